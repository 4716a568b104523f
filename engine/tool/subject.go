package tool

import "encoding/json"

// Subject is a command or a path that a call acts on. Approval rules with a prefix compare it.
type Subject struct {
	Command string // what a shell runs; empty: the subject is a path
	Dir     string // where the command runs, absolute or relative to the workspace; empty: the workspace
	Path    string // absolute or relative to the workspace
	Below   bool   // the call may act on everything below the path, too
	Skips   string // except in directories with this name
}

// Subjecter is a Provider that names the subjects of its calls. For other providers lashd uses the arguments command
// and path, if present; a path then includes everything below it, and a command runs in the argument workdir or cwd.
type Subjecter interface {
	// Subjects returns everything that a call acts on. It runs before the call is approved, so it must not do IO. The
	// arguments match the tool's schema. For arguments that the tool would reject it may return nothing.
	Subjects(name string, args json.RawMessage) []Subject
}

// Programs says where the programs run that a call starts.
type Programs int

const (
	ProgramsUnknown Programs = iota // the tool does not know of sandboxes
	ProgramsInside                  // in the sandbox of Invocation.Sandbox
	ProgramsOutside                 // outside of a sandbox: the call requests that, or the system has none
)

// Confiner is a Provider that starts programs in the sandbox of a call.
type Confiner interface {
	// Programs says where the programs of a call run. It runs before the call is approved. lashd asks only providers that ship
	// with it.
	Programs(name string, args json.RawMessage) Programs
}

// Programs says where the programs of a call run, by the word of its provider.
func (e *Entry) Programs(args json.RawMessage) Programs {
	if e.from != nil {
		if c, ok := e.from.provider.(Confiner); ok {
			return c.Programs(e.Manifest.Name, args)
		}
	}
	return ProgramsUnknown
}

// Subjects returns what a call acts on, as far as that is known before it runs.
func (e *Entry) Subjects(args json.RawMessage) []Subject {
	if e.from != nil {
		if s, ok := e.from.provider.(Subjecter); ok {
			return s.Subjects(e.Manifest.Name, args)
		}
	}
	// A map, because a struct would also accept keys in another case, which tools do not.
	known := map[string]json.RawMessage{}
	var command, path, dir string
	if json.Unmarshal(args, &known) == nil {
		_ = json.Unmarshal(known["command"], &command) // anything but a string is ignored
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
