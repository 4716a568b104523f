package proc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Confines reports which confinement the kernel supports. The first call probes the kernel.
var Confines = sync.OnceValue(func() Support {
	s := Support{Limits: true, Processes: os.Getuid() != 0}
	switch abi, err := landlockABI(); {
	case err != nil:
		s.Lacking = "the kernel has no Landlock: " + err.Error()
	case auditArch == 0 || !filters():
		s.Lacking = "the kernel does not support system call filters"
	default:
		s.Sandbox = abi
	}
	return s
})

// isApart reports whether the child gets a process namespace: every child with a sandbox, where the system has Views. A child with a View
// does not start elsewhere.
func (c Command) isApart() (bool, error) {
	if c.Confine == nil {
		return false, nil
	}
	if err := c.Confine.demand(Confines()); err != nil {
		return false, err
	}
	s := c.Confine.Sandbox
	if s == nil || Confines().Sandbox == 0 || c.trial {
		return c.trial, nil
	}
	if err := Views(); err != nil && s.View != nil {
		return false, err
	}
	return Views() == nil, nil
}

// order tells a confined child how to confine itself and which program to execute then. It is sent as JSON through the
// gate, so that the environment of the target program does not affect this one.
type order struct {
	Limits  Limits   `json:"limits"`
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	ABI     int      `json:"abi,omitempty"`
	// Stay makes the gate stay as the first process of a process namespace, and start the program as a child.
	Stay bool `json:"stay,omitempty"`
	// Terminal makes the streams the controlling terminal of the program. Only for a gate that stays; others have it themselves.
	Terminal bool     `json:"terminal,omitempty"`
	Path     string   `json:"path"`
	Argv     []string `json:"argv"`
	Env      []string `json:"env"`
	Listen   int      `json:"listen,omitempty"` // descriptor to which to send a listening socket; 0: none
}

// refusal is the error of a child that could not confine itself or start its program.
type refusal struct {
	Op    string        `json:"op"`
	Path  string        `json:"path,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
	Text  string        `json:"text,omitempty"`
}

// err converts the refusal back to an error of package os or io/fs.
func (r *refusal) err() error {
	switch {
	case r.Errno == 0:
		return fmt.Errorf("%s: %s", r.Op, r.Text)
	case r.Path == "":
		return os.NewSyscallError(r.Op, r.Errno)
	}
	return &fs.PathError{Op: r.Op, Path: r.Path, Err: r.Errno}
}

// gate controls a child between fork and exec. The child runs this program until it has confined itself, and only then
// becomes the target program. Until then neither the target program nor its environment is loaded. A nil gate is for an
// unconfined child.
type gate struct {
	order           order
	orders, replies *os.File      // our ends: orders to the child, errors from it
	childEnds       [2]*os.File   // the child's ends
	said            *json.Decoder // reads replies
}

// passedProgram is the path at which a child finds an open program: the first file after the two of the gate.
const passedProgram = "/proc/self/fd/5"

// gateLimit is far above the few milliseconds that the gate normally takes.
const gateLimit = 10 * time.Second

// confined changes cmd to run this program, which confines itself and then executes the original program. Without a
// Confinement it returns nil. The caller must call pass or close.
func (c Command) confined(cmd *exec.Cmd) (*gate, error) {
	if c.Confine == nil {
		return nil, nil
	}
	if err := errors.Join(cmd.Err, c.Confine.demand(Confines())); err != nil {
		return nil, err
	}
	g := &gate{order: order{Limits: c.Confine.Limits, Path: cmd.Path, Argv: cmd.Args, Env: cmd.Environ()}}
	if s := c.Confine.Sandbox; s != nil && Confines().Sandbox > 0 {
		own := *s
		if program, err := programOf(cmd); err == nil { // if it does not exist, the child reports that
			own.Read = append([]string{program}, s.Read...)
		}
		g.order.Sandbox, g.order.ABI, g.order.Stay, g.order.Terminal = &own, Confines().Sandbox, c.apart, c.Terminal
	}
	if err := g.open(); err != nil {
		return nil, err
	}
	// Variables such as LD_PRELOAD would take effect before the gate. The mark has no such effect, and Sweep needs it.
	cmd.Path, cmd.Args, cmd.Env = "/proc/self/exe", []string{gateName}, append(marking(c.Nonce), raceOptions())
	cmd.ExtraFiles = g.childEnds[:]
	if c.Program != nil {
		g.order.Path, cmd.ExtraFiles = passedProgram, append(cmd.ExtraFiles[:2:2], c.Program)
	}
	if c.gateEnd != nil {
		g.order.Listen, cmd.ExtraFiles = 3+len(cmd.ExtraFiles), append(slices.Clip(cmd.ExtraFiles), c.gateEnd)
	}
	return g, nil
}

// programOf returns the file that cmd executes, with symbolic links resolved, so that the sandbox can allow it.
func programOf(cmd *exec.Cmd) (string, error) {
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmd.Dir, path)
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// open creates the pipes of the gate.
func (g *gate) open() (err error) {
	if g.childEnds[0], g.orders, err = os.Pipe(); err != nil {
		return err
	}
	if g.replies, g.childEnds[1], err = os.Pipe(); err != nil {
		g.close()
		return err
	}
	g.said = json.NewDecoder(g.replies)
	return nil
}

// pass lets the child through the gate, and returns when it runs the target program: the pipe for replies closes on
// exec, or the gate stays and says so. If the child reports an error, or needs longer than gateLimit, pass returns it, and the caller
// kills the child. The caller closes the gate after the child has ended.
func (g *gate) pass() error {
	if g == nil {
		return nil
	}
	g.childEnds[0].Close()
	g.childEnds[1].Close()
	limit := time.Now().Add(gateLimit)
	if err := errors.Join(g.orders.SetDeadline(limit), g.replies.SetDeadline(limit)); err != nil {
		return err
	}
	// A child that does not read its order reports why, or is dead and its exit status says so.
	sent := json.NewEncoder(g.orders).Encode(&g.order)
	g.orders.Close()
	var r reply
	err := g.said.Decode(&r)
	switch {
	case errors.Is(err, io.EOF) && !g.order.Stay:
		err = sent
	case errors.Is(err, io.EOF):
		err = cmp.Or(sent, errors.New("the first process of the command ended"))
	case err == nil && r.Refusal != nil:
		err = r.Refusal.err()
	}
	if err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	return g.replies.SetDeadline(time.Time{})
}

// close ignores errors: the files are our own pipes.
func (g *gate) close() {
	if g == nil {
		return
	}
	for _, f := range []*os.File{g.orders, g.replies, g.childEnds[0], g.childEnds[1]} {
		f.Close()
	}
}
