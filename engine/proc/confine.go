package proc

import (
	"errors"
	"fmt"
)

// Confinement is what a child, and all that it starts, is held to from its first instruction on. It cannot be taken off.
type Confinement struct {
	Limits  Limits
	Sandbox *Sandbox // nil: none
}

// Limits are what a child may use. Zero means as much as this process may. Dumps of core are never written.
type Limits struct {
	Memory    int64 `json:"memory,omitempty"`    // bytes of address space, of each process
	OpenFiles int64 `json:"openFiles,omitempty"` // of each process
	FileSize  int64 `json:"fileSize,omitempty"`  // bytes of a file that is written
	// Processes and threads besides those that the user has when the child is started: the system counts all of a user
	// together, so what others of the user start meanwhile counts against the child. It counts none of root's.
	Processes int64 `json:"processes,omitempty"`
}

// Sandbox confines a child to files. It may read what programs need of the system, the program itself, and /proc; of the
// latter neither memory nor environment nor files of processes outside. It connects to no local socket, signals only what it
// has started, and has no privileges, not even of root.
//
// The paths must have no links in them, so that what may write in one of them cannot make more of another. A path
// that is not there when the child is started is not there for it later either.
type Sandbox struct {
	Read     []string `json:"read,omitempty"`  // files and directories that it may read, and run
	Write    []string `json:"write,omitempty"` // files and directories that it may write, too
	Network  bool     `json:"network,omitempty"`
	Required bool     `json:"-"` // Start fails where there is no sandbox; otherwise the child then runs without
}

// Support says what the system can hold children to.
type Support struct {
	Limits    bool
	Processes bool   // the limit of that name holds
	Sandbox   int    // version of the kernel's interface (Landlock); 0: there is none
	Lacking   string // why there is no sandbox
}

// ErrNoSandbox is why a child is not started that must have a sandbox.
var ErrNoSandbox = errors.New("there is no sandbox")

// String is the sandbox in a word: "landlock abi 7", or "none" with the reason.
func (s Support) String() string {
	if s.Sandbox == 0 {
		return "none: " + s.Lacking
	}
	return fmt.Sprintf("landlock abi %d", s.Sandbox)
}

// demand fails if a sandbox must be there and is not.
func (c *Confinement) demand(s Support) error {
	if c.Sandbox != nil && c.Sandbox.Required && s.Sandbox == 0 {
		return fmt.Errorf("%w: %s", ErrNoSandbox, s.Lacking)
	}
	return nil
}
