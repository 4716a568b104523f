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
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"
)

const (
	// ListenAddress is where a child with a network of its own reaches Command.Serve.
	ListenAddress = "127.0.0.1:17171"

	// Defaults of Command.Grace and Command.Drain.
	defaultGrace = 5 * time.Second
	defaultDrain = 2 * time.Second

	// nonceVariable is the environment variable that marks a child and its descendants for Sweep.
	nonceVariable = "LASHD_CHILD"
	// detachedVariable marks processes that lashd must not end.
	detachedVariable = "LASHD_DETACHED"
)

// Command describes a child process. Start takes it by value; the caller may reuse it, except for the files and streams
// in it.
type Command struct {
	Argv []string // required; Argv[0] is looked up in this process's PATH unless Path is set
	Path string   // executable; empty: look up Argv[0]
	// Program is the open executable. On Linux it runs even if another file has its path by the time of the start. Nil:
	// use Path or Argv[0].
	Program *os.File
	Dir     string // working directory; empty: that of this process
	// OpenDir is the open working directory. On Linux it is used even if another directory has its path by the time of
	// the start. Nil: use Dir. The caller may close it after Start has returned.
	OpenDir *os.File
	Env     []string // the whole environment: nothing is inherited
	// Nonce marks the child and its descendants for Sweep; empty: unmarked. An optional suffix after a slash
	// distinguishes children with one nonce.
	Nonce string
	// Confine limits the child; nil: no limits. Limits that Confines does not report have no effect.
	Confine *Confinement

	// Terminal makes the stream, which must be one *os.File for all three, the child's controlling terminal. Not on
	// Windows.
	Terminal bool

	// Stdin is copied to the child until it ends or the child exits. A blocked Read does not delay Wait but keeps its
	// goroutine: close the source. An *os.File is passed to the child directly. Nil is the null device.
	Stdin io.Reader
	// Stdout and Stderr receive the child's output. After a failed Write the rest is read and dropped, so that the
	// child does not block on a full pipe. An *os.File is passed to the child directly. Nil is the null device. If both
	// are equal, at most one goroutine writes to it at a time.
	Stdout, Stderr io.Writer

	// Serve accepts the connections that a child with a network of its own makes to ListenAddress. When the child has ended,
	// ctx ends and the listener is closed; then it must return, and Wait returns after it. Nil: nothing listens there. Linux only.
	Serve func(ctx context.Context, l net.Listener)

	gateEnd *os.File // in the supervisor: where the gate sends the socket for Serve

	trial bool // Views tries whether the command can start
	apart bool // in the supervisor: the child gets namespaces of its own, or does not start

	Grace time.Duration // from SIGTERM to SIGKILL when stopped; default 5s
	Drain time.Duration // how long Wait reads output after the group is dead; default 2s
}

// Start runs c until it exits, is stopped, or ctx ends. The end of ctx is a Stop with its cause. The child is reaped
// whether or not Wait is called. An error means that nothing was started.
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

// why names a missing working directory in an error: the system reports it like a missing program.
func (c Command) why(err error) error {
	if _, gone := os.Stat(c.Dir); c.Dir != "" && gone != nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("working directory: %w", gone)
	}
	return err
}

// cmd returns the exec.Cmd without streams and confinement.
func (c Command) cmd() *exec.Cmd {
	cmd := exec.Command(cmp.Or(descriptor(c.Program), c.Path, c.Argv[0]))
	cmd.Args = c.Argv
	cmd.Dir = c.OpenedDir()
	cmd.Env = append([]string{}, c.Env...) // never nil, which would mean our own environment
	cmd.Env = append(cmd.Env, marking(c.Nonce)...)
	detach(cmd, c.Terminal)
	return cmd
}

// OpenedDir returns the path that leads a new process to its working directory. It is valid while OpenDir is open.
func (c Command) OpenedDir() string { return cmp.Or(descriptor(c.OpenDir), c.Dir) }

// descriptor returns the path under which a new process finds a file that is open in this process, in its copy of the
// descriptors; "" if there is none.
func descriptor(f *os.File) string {
	if f == nil || runtime.GOOS != "linux" {
		return ""
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd())
}

// marking returns the environment entry for a nonce; none for an empty nonce.
func marking(nonce string) []string {
	if nonce == "" {
		return []string{}
	}
	return []string{nonceVariable + "=" + nonce}
}
