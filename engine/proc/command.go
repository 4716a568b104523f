// Package proc runs child processes that die with all that they start.
//
// A child leads its own session and process group. When it exits, is stopped, or its context ends, every process left in
// that group is killed.
//
// On Linux each child has a supervisor: a process of this program that starts the child and adopts every descendant that
// loses its parent. It kills all of them when the child is stopped, when Sweep names its nonce, and when this process dies,
// even by SIGKILL. Neither a new session, nor a double fork, nor an empty environment leads out of it. A child that exits by
// itself may leave processes behind that left its group; they end with Sweep or with this process, at the latest.
// Between Begin and End supervisors run in a cgroup, where the system allows one: then the next Begin also ends what is left after both this
// process and a supervisor were killed.
//
// Elsewhere a killed daemon takes along all of the group (Windows) or nothing (macOS), and what left the group is out of
// reach. Exit.Escaped reports it if it still holds an output pipe.
//
// All functions and methods are safe for concurrent use.
package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"
)

const (
	defaultGrace = 5 * time.Second
	defaultDrain = 2 * time.Second

	// nonceVariable is how Sweep recognises a child, and the descendants that inherited its environment.
	nonceVariable = "LASHD_CHILD"
	// detachedVariable marks what is not to be ended.
	detachedVariable = "LASHD_DETACHED"
)

// Command says what to run. Start takes it by value and keeps no part of it that the caller may want to change.
type Command struct {
	Argv []string // required; Argv[0] is looked up in this process's PATH unless Path is set
	Path string   // executable, when it is not to be found by Argv[0]
	// Program is the executable itself, on Linux: whatever is at its place by now. Nil: what Path or Argv[0] says.
	Program *os.File
	Dir     string // working directory; empty means that of this process
	// OpenDir is the working directory itself, on Linux: whatever is at its path by now. Nil: what Dir says. The caller closes it once
	// Start has returned.
	OpenDir *os.File
	Env     []string // the whole environment: nothing is inherited
	// Nonce marks the child and its descendants for Sweep; empty leaves them unmarked. What follows a slash tells them apart
	// from others of one nonce.
	Nonce string
	// Confine is what the child is held to; nil: to nothing. Of that only what Confines tells holds.
	Confine *Confinement

	// Terminal gives the child the terminal that all three streams are: the same *os.File. Not on Windows.
	Terminal bool

	// Stdin feeds the child until it ends, or the child exits. A Read that blocks does not delay Wait, but it outlives the
	// child: close the source. An *os.File is handed to the child itself. Nil is the null device.
	Stdin io.Reader
	// Stdout and Stderr receive what the child writes. After a failed Write the rest is read and dropped, so that the child
	// never blocks on a full pipe. An *os.File is handed to the child itself. Nil is the null device. If both are the same
	// pointer, at most one goroutine writes to it.
	Stdout, Stderr io.Writer

	Grace time.Duration // from SIGTERM to SIGKILL when stopped; default 5s
	Drain time.Duration // how long Wait goes on reading after the group is dead; default 2s
}

// Start runs c until it exits, is stopped, or ctx ends; the end of ctx is a Stop with its cause. The child is reaped whether
// or not anyone calls Wait.
func Start(ctx context.Context, c Command) (*Process, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("start process: empty argv")
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], context.Cause(ctx))
	}
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.Drain = cmp.Or(c.Drain, defaultDrain)

	ctx, stop := context.WithCancelCause(ctx)
	p := &Process{stop: stop, done: make(chan struct{}), interrupts: make(chan struct{}, 1)}
	started := make(chan error, 1)
	go p.run(ctx, c, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], c.why(err))
	}
	return p, nil
}

// why tells of a directory that is not there: the system says the same of that as of a program.
func (c Command) why(err error) error {
	if _, gone := os.Stat(c.Dir); c.Dir != "" && gone != nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("its directory: %w", gone)
	}
	return err
}

func (c Command) cmd() *exec.Cmd {
	cmd := exec.Command(cmp.Or(descriptor(c.Program), c.Path, c.Argv[0]))
	cmd.Args = c.Argv
	cmd.Dir = c.OpenedDir()
	cmd.Env = append([]string{}, c.Env...) // never nil, which would mean our own environment
	cmd.Env = append(cmd.Env, marking(c.Nonce)...)
	detach(cmd, c.Terminal)
	return cmd
}

// OpenedDir is the path by which a new process finds its working directory. It holds for as long as OpenDir is open.
func (c Command) OpenedDir() string { return cmp.Or(descriptor(c.OpenDir), c.Dir) }

// descriptor is the path by which a new process finds a file that is open here, in its own copy of our files.
func descriptor(f *os.File) string {
	if f == nil || runtime.GOOS != "linux" {
		return ""
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd())
}

// marking is how a nonce stands in an environment.
func marking(nonce string) []string {
	if nonce == "" {
		return []string{}
	}
	return []string{nonceVariable + "=" + nonce}
}
