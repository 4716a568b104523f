package tool

import (
	"encoding/json"
	"fmt"

	"lashd/engine/hostrule"
	"lashd/rpc/protocol"
)

// Subject is a command, a path or a host that a call acts on. Approval rules compare it.
type Subject struct {
	Command string // what a shell runs; empty: the subject is a path or a host
	Host    string // a host that the commands of the call want to reach, as host or host:port; empty: the subject is a command or a path
	Dir     string // where the command runs, absolute or relative to the workspace; empty: the workspace
	Path    string // absolute or relative to the workspace
	Below   bool   // the call may act on everything below the path, too
	Skips   string // except in directories with this name
}

// Subjecter is a Provider that names the subjects of its calls. For other providers lashd uses the arguments command
// and path, if present, and for a Confiner hosts; a path then includes everything below it, and a command runs in the argument workdir or cwd.
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

// ProgramsJudged says where the programs of a call run for a decision about it. Only tools that ship with lashd are believed. A
// tool of a client that is there to start programs starts them outside of the sandbox.
func (e *Entry) ProgramsJudged(args json.RawMessage, kind protocol.ToolKind, ships, client bool) Programs {
	switch {
	case ships:
		return e.Programs(args)
	case client && kind == protocol.ToolKindExecute:
		return ProgramsOutside
	}
	return ProgramsUnknown
}

// ProgramsOfClient says where the programs of a call run if a client's tool takes the place of this one: the client starts
// them, so those that belong in the sandbox run outside of it.
func (e *Entry) ProgramsOfClient(args json.RawMessage) Programs {
	if e.Programs(args) == ProgramsUnknown {
		return ProgramsUnknown
	}
	return ProgramsOutside
}

// hosts returns the argument hosts of a Confiner: other tools may have an argument of that name for something else.
func (e *Entry) hosts(args json.RawMessage) (all []string) {
	if e.from == nil {
		return nil
	}
	if _, ok := e.from.provider.(Confiner); ok {
		known := map[string]json.RawMessage{} // as in Subjects
		_ = json.Unmarshal(args, &known)      // anything but an object has none
		_ = json.Unmarshal(known["hosts"], &all)
	}
	return all
}

// MaxHosts is the limit of the argument hosts of a call: a person has to read them.
const MaxHosts = 32

// checkHosts validates the argument hosts of a Confiner.
func (e *Entry) checkHosts(args json.RawMessage) error {
	all := e.hosts(args)
	if len(all) > MaxHosts {
		return fmt.Errorf("hosts has %d entries; at most %d are allowed", len(all), MaxHosts)
	}
	_, err := hostrule.ParseAll(all)
	return err
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
	for _, host := range e.hosts(args) {
		all = append(all, Subject{Host: host})
	}
	if command != "" {
		all = append(all, Subject{Command: command, Dir: dir})
	}
	if path != "" {
		all = append(all, Subject{Path: path, Below: true})
	}
	return all
}
