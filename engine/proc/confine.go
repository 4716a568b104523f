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
	// against the child. A child with a process namespace has the number for itself. Root is limited only with one, and since Linux 6.14.
	Processes int64 `json:"processes,omitempty"`
}

// Sandbox restricts the files that a child can use. It may read the system files that programs need, its own program,
// and /proc. It cannot connect to local sockets, signal processes that it did not start, or use privileges, even as root.
//
// Where the system has Views, the child has a process namespace: it sees only the processes that it started, and all of them end with
// it. Elsewhere it sees the others in /proc with their arguments, but not their memory, environment and files.
//
// Paths must not contain symbolic links: otherwise a child that may write to one path could give itself another. A path
// that does not exist when the child starts stays inaccessible.
type Sandbox struct {
	Read  []string `json:"read,omitempty"`  // files and directories that it may read and execute
	Write []string `json:"write,omitempty"` // files and directories that it may also write
	// Keep lists files and directories that the child cannot change, although they are in a directory that it may write. They must
	// exist. Keep needs mounts of the child's own; where the system does not allow those, it has no effect on a child without a View.
	Keep []string `json:"keep,omitempty"`
	// Network allows connections over the internet protocols.
	Network  bool  `json:"network,omitempty"`
	View     *View `json:"view,omitempty"` // nil: the child sees the system, and reads only what is listed
	Required bool  `json:"-"`              // Start fails without a sandbox; otherwise the child runs unconfined
}

// View is a child's own view of the system, for commands that are to work as they do outside: the child reads everything that is not
// hidden, and has the usual devices, and a /tmp and a /dev/shm of its own. Without Sandbox.Network it has a network of its own, in which it
// is alone: there its processes can connect to local sockets of each other. A child with a View needs namespaces; see Views.
type View struct {
	// Hide lists files and directories that the child finds empty and cannot read. A path that does not exist is hidden if it is made
	// while the child runs.
	Hide []string `json:"hide,omitempty"`
	// Show lists files and directories that stay visible, also in /tmp and in hidden directories. The child can only read them.
	Show []string `json:"show,omitempty"`
	// Temp is the directory that the child finds as /tmp. Paths of the sandbox in the system's /tmp stay where they are.
	Temp string `json:"temp"`
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

// Describe names the sandbox of a child without a View for people: that of Confines, with the reason if it has no process namespace.
// The first call may start a program; see Views.
func Describe() string {
	s := Confines()
	if s.Sandbox == 0 {
		return s.String()
	}
	if err := Views(); err != nil {
		return fmt.Sprintf("%v, without a process namespace: %v", s, err)
	}
	return s.String()
}

// demand fails if a sandbox is required but not available.
func (c *Confinement) demand(s Support) error {
	if c.Sandbox != nil && (c.Sandbox.Required || c.Sandbox.View != nil) && s.Sandbox == 0 {
		return fmt.Errorf("%w: %s", ErrNoSandbox, s.Lacking)
	}
	return nil
}
