package shell

import (
	"encoding/json"

	"lashd/engine/sandbox"
	"lashd/engine/tool"
)

// Programs implements tool.Confiner. Detached commands never run in a sandbox, because it ends with lashd.
func (s *shell) Programs(name string, args json.RawMessage) tool.Programs {
	var a struct{ Outside, Detach bool }
	unreadable := json.Unmarshal(args, &a) != nil
	switch name {
	case "shell", "start_command":
		if unreadable || a.Outside || a.Detach || sandbox.Available() != nil {
			return tool.ProgramsOutside
		}
		return tool.ProgramsInside
	case "stop_command":
		return tool.ProgramsInside // it starts none
	case "write_stdin":
		return tool.ProgramsOutside // the command that reads it may run outside
	}
	return tool.ProgramsUnknown
}
