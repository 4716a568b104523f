package shell

import (
	"encoding/json"
	"errors"

	"lashd/engine/sandbox"
	"lashd/engine/tool"
)

// checkHosts rejects the argument hosts where it means nothing: outside of a sandbox a command reaches every host. The patterns are checked
// before the call is approved.
func checkHosts(hosts []string, outside, detach bool) error {
	switch {
	case len(hosts) == 0:
		return nil
	case outside:
		return errors.New("outside and hosts exclude each other: outside of the sandbox a command reaches every host")
	case detach:
		return errors.New("detach and hosts exclude each other: a detached command runs outside of the sandbox, where it reaches every host")
	}
	return nil
}

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
