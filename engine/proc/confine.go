package proc

import (
	"errors"
	"fmt"
)

// Confinement limits a child and all its descendants from their first instruction on. It cannot be lifted.
type Confinement struct {
	Limits  Limits
	Sandbox *Sandbox // nil: none
}

// Limits are resource limits of a child. Zero means the limit of this process. Core dumps are always disabled.
type Limits struct {
	Memory    int64 `json:"memory,omitempty"`    // bytes of address space, per process
	OpenFiles int64 `json:"openFiles,omitempty"` // per process
	FileSize  int64 `json:"fileSize,omitempty"`  // maximum size of a written file in bytes
	// Processes is the number of processes and threads in addition to those that the user has at the start of the
	// child. The kernel counts all processes of a user together, so processes started elsewhere by the same user count
	// against the child. Root is not limited.
	Processes int64 `json:"processes,omitempty"`
}

// Sandbox restricts the files that a child can use. It may read the system files that programs need, its own program,
// and /proc except the memory, environment and files of processes outside. It cannot connect to local sockets, signal
// processes that it did not start, or use privileges, even as root.
//
// Paths must not contain symbolic links: otherwise a child that may write to one path could give itself another. A path
// that does not exist when the child starts stays inaccessible.
type Sandbox struct {
	Read  []string `json:"read,omitempty"`  // files and directories that it may read and execute
	Write []string `json:"write,omitempty"` // files and directories that it may also write
	// Network allows connections over the internet protocols.
	Network  bool `json:"network,omitempty"`
	Required bool `json:"-"` // Start fails without a sandbox; otherwise the child runs unconfined
}

// Support describes which confinement the system offers.
type Support struct {
	Limits    bool
	Processes bool   // Limits.Processes has an effect
	Sandbox   int    // version of the kernel's Landlock interface; 0: no sandbox
	Lacking   string // why there is no sandbox
}

// ErrNoSandbox means that a child requires a sandbox and the system has none.
var ErrNoSandbox = errors.New("no sandbox available")

// String names the sandbox: "landlock abi 7", or "none" with the reason.
func (s Support) String() string {
	if s.Sandbox == 0 {
		return "none: " + s.Lacking
	}
	return fmt.Sprintf("landlock abi %d", s.Sandbox)
}

// demand fails if a sandbox is required but not available.
func (c *Confinement) demand(s Support) error {
	if c.Sandbox != nil && c.Sandbox.Required && s.Sandbox == 0 {
		return fmt.Errorf("%w: %s", ErrNoSandbox, s.Lacking)
	}
	return nil
}
