package tool

import "encoding/json"

// Subject is something that a call is about, as approval rules with a prefix see it: a command, or else a path.
type Subject struct {
	Command string // what a shell is to run
	Dir     string // where it is to run, absolute or from the workspace on; empty: the workspace
	Path    string // absolute, or from the workspace on
	Below   bool   // the call may also be about all that is below the path
	Skips   string // but not about what is in directories of this name there
}

// Subjecter is a Provider that tells what its calls are about. What calls of others are about is told by their arguments command
// and path, if they have them, and a path stands for all that is below it. A command runs in the argument workdir or cwd.
type Subjecter interface {
	// Subjects is everything that a call is about. Nobody has allowed the call yet: to tell does no IO. The arguments fit the
	// tool's schema; where the tool would refuse them there need be none.
	Subjects(name string, args json.RawMessage) []Subject
}

// Subjects are what a call is about, as far as anybody can tell.
func (e *Entry) Subjects(args json.RawMessage) []Subject {
	if e.from != nil {
		if s, ok := e.from.provider.(Subjecter); ok {
			return s.Subjects(e.Manifest.Name, args)
		}
	}
	// Not a struct: its fields would take keys of another case, which a tool does not.
	known := map[string]json.RawMessage{}
	var command, path, dir string
	if json.Unmarshal(args, &known) == nil {
		_ = json.Unmarshal(known["command"], &command) // what is no text is no subject
		_ = json.Unmarshal(known["path"], &path)
		_ = json.Unmarshal(known["cwd"], &dir)
		_ = json.Unmarshal(known["workdir"], &dir)
	}
	var all []Subject
	if command != "" {
		all = append(all, Subject{Command: command, Dir: dir})
	}
	if path != "" {
		all = append(all, Subject{Path: path, Below: true})
	}
	return all
}
