package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Confines says what the kernel can hold children to.
var Confines = sync.OnceValue(func() Support {
	s := Support{Limits: true, Processes: os.Getuid() != 0}
	switch abi, err := landlockABI(); {
	case err != nil:
		s.Lacking = "the kernel has no Landlock: " + err.Error()
	case auditArch == 0 || !filters():
		s.Lacking = "the kernel filters no system calls"
	default:
		s.Sandbox = abi
	}
	return s
})

// order is what a confined child is told: what to hold itself to, and which program to become then.
type order struct {
	Limits  Limits   `json:"limits"`
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	ABI     int      `json:"abi,omitempty"`
	Path    string   `json:"path"`
	Argv    []string `json:"argv"`
	Env     []string `json:"env"`
}

// refusal is why it did not.
type refusal struct {
	Op    string        `json:"op"`
	Path  string        `json:"path,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
	Text  string        `json:"text,omitempty"`
}

func (r *refusal) err() error {
	switch {
	case r.Errno == 0:
		return fmt.Errorf("%s: %s", r.Op, r.Text)
	case r.Path == "":
		return os.NewSyscallError(r.Op, r.Errno)
	}
	return &fs.PathError{Op: r.Op, Path: r.Path, Err: r.Errno}
}

// gate is what a confined child passes before it is the program that it is to be. Nothing of that program, nor of its
// environment, is there before.
type gate struct {
	order      order
	tell, hear *os.File
	theirs     [2]*os.File
}

// theirProgram is the path by which a child finds the program that it was given, as the first file after those of the gate.
const theirProgram = "/proc/self/fd/5"

// gateLimit is far more than the gate takes, which is a few milliseconds.
const gateLimit = 10 * time.Second

// confined makes cmd this program itself, which becomes the other one when it has confined itself.
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
		if program, err := programOf(cmd); err == nil { // if there is none, it says so
			own.Read = append([]string{program}, s.Read...)
		}
		g.order.Sandbox, g.order.ABI = &own, Confines().Sandbox
	}
	if err := g.open(); err != nil {
		return nil, err
	}
	// Variables such as LD_PRELOAD would change what happens before the gate. The mark does not, and has to be there.
	cmd.Path, cmd.Args, cmd.Env = "/proc/self/exe", []string{gateName}, marking(c.Nonce)
	cmd.ExtraFiles = g.theirs[:]
	if c.Program != nil {
		g.order.Path, cmd.ExtraFiles = theirProgram, append(cmd.ExtraFiles[:2:2], c.Program)
	}
	return g, nil
}

// programOf is the file that cmd runs, without links.
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

func (g *gate) open() (err error) {
	if g.theirs[0], g.tell, err = os.Pipe(); err != nil {
		return err
	}
	if g.hear, g.theirs[1], err = os.Pipe(); err != nil {
		g.close()
	}
	return err
}

// pass sends the child through the gate, and returns when it is the other program.
func (g *gate) pass() error {
	if g == nil {
		return nil
	}
	defer g.close()
	g.theirs[0].Close()
	g.theirs[1].Close()
	limit := time.Now().Add(gateLimit)
	if err := errors.Join(g.tell.SetDeadline(limit), g.hear.SetDeadline(limit)); err != nil {
		return err
	}
	// A child that does not read says why, or is dead, which its exit tells.
	sent := json.NewEncoder(g.tell).Encode(&g.order)
	g.tell.Close()
	said, err := io.ReadAll(g.hear)
	switch {
	case err != nil:
		return fmt.Errorf("confine: %w", err)
	case len(said) > 0:
		var r refusal
		if err := json.Unmarshal(said, &r); err != nil {
			return fmt.Errorf("confine: %w", err)
		}
		return fmt.Errorf("confine: %w", r.err())
	case sent != nil:
		return fmt.Errorf("confine: %w", sent)
	}
	return nil
}

// close has no outcome to report: the files are pipes, and ours.
func (g *gate) close() {
	if g == nil {
		return
	}
	for _, f := range []*os.File{g.tell, g.hear, g.theirs[0], g.theirs[1]} {
		f.Close()
	}
}
