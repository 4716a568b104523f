package background

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
)

// grace is how long a command has to end by itself once it is asked to.
const grace = 2 * time.Second

// Commands runs the commands of tasks.
type Commands struct {
	Environ []string // of a command, before its own
	Nonce   string   // begins the mark of its processes, for proc.Sweep
	Outputs *Outputs
}

// Run runs the command of a task to its end, whatever ends it. It takes signals until it returns.
func (c *Commands) Run(ctx context.Context, t *protocol.Task, cwd string, signals <-chan Signal) *protocol.TaskOutcome {
	out, err := c.Outputs.Writer(t)
	if err != nil {
		return failed("output", err)
	}
	defer out.Close()
	in, feed := io.Pipe()
	defer in.Close()
	p, err := proc.Start(ctx, c.command(t.Spec.Command, cwd, in, out))
	if err != nil {
		return failed("not_started", err)
	}
	var taking sync.WaitGroup
	taking.Go(func() { take(p.Done(), signals, feed) })
	exit, err := p.Wait()
	feed.CloseWithError(io.ErrClosedPipe)
	taking.Wait()
	if err != nil {
		return failed("not_reaped", err)
	}
	return Outcome(exit)
}

// watchGrace is how long the command of a monitor has to end by itself once it is asked to.
const watchGrace = 200 * time.Millisecond

// Watch runs the command of a monitor to its end, whatever ends it. It gets no input. Its lines go to those that are given, too;
// all are there when it returns.
func (c *Commands) Watch(ctx context.Context, t *protocol.Task, cwd string, lines *Lines) *protocol.TaskOutcome {
	file, err := c.Outputs.Writer(t)
	if err != nil {
		return failed("output", err)
	}
	defer file.Close()
	out, errs := &splitter{lines: lines}, &splitter{lines: lines, err: true}
	cmd := c.command(t.Spec.Command, cwd, nil, io.MultiWriter(file, out))
	cmd.Stderr, cmd.Grace = io.MultiWriter(file, errs), watchGrace
	p, err := proc.Start(ctx, cmd)
	if err != nil {
		return failed("not_started", err)
	}
	exit, err := p.Wait()
	out.end()
	errs.end()
	if err != nil {
		return failed("not_reaped", err)
	}
	return Outcome(exit)
}

func (c *Commands) command(s *protocol.TaskShell, cwd string, in io.Reader, out io.Writer) proc.Command {
	dir := cwd
	if s.Workdir != "" {
		dir = s.Workdir
	}
	env := append(slices.Clip(c.Environ), "TERM=dumb", "PWD="+dir)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	return proc.Command{
		Argv: []string{"sh", "-c", s.Script}, Dir: dir, Env: env, Nonce: c.Nonce + "/" + rand.Text(),
		Stdin: in, Stdout: out, Stderr: out, Grace: grace,
	}
}

// Signal is something for a running command; why it was not taken goes to Done, which has room for it.
type Signal struct {
	Name    string
	Payload json.RawMessage
	Done    chan<- error
}

// Signals are those that every command takes.
func Signals() []protocol.TaskSignalType {
	return []protocol.TaskSignalType{
		{Name: "stdin", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","maxLength":1048576}},"required":["text"],"additionalProperties":false}`)},
		{Name: "closeStdin"},
	}
}

// take gives a command what is sent to it, one thing at a time: a command that does not read holds up only who writes to it.
func take(ended <-chan struct{}, signals <-chan Signal, stdin *io.PipeWriter) {
	for {
		select {
		case <-ended:
			return
		case s := <-signals:
			s.Done <- deliver(s, stdin, ended)
		}
	}
}

// stdinPatience is how long a command may leave what is written to it unread.
const stdinPatience = 10 * time.Second

// ErrDeaf means that what was written to a command may be read by it, or not.
var ErrDeaf = errors.New("the command does not read its input")

func deliver(s Signal, stdin *io.PipeWriter, ended <-chan struct{}) error {
	switch s.Name {
	case "closeStdin":
		return stdin.Close()
	case "stdin":
	default:
		return fmt.Errorf("a command takes no signal %q", s.Name)
	}
	var p struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(s.Payload, &p); err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(stdin, p.Text)
		written <- err
	}()
	limit := time.NewTimer(stdinPatience)
	defer limit.Stop()
	select {
	case err := <-written:
		return err
	case <-ended:
		return errors.New("the command has ended")
	case <-limit.C:
		stdin.CloseWithError(ErrDeaf)
		return ErrDeaf
	}
}

// Outcome is how a process ended. One that lashd stopped is told as stopped, by nobody yet.
func Outcome(exit proc.Exit) *protocol.TaskOutcome {
	switch {
	case exit.Signal != "" && exit.Cause != nil:
		return &protocol.TaskOutcome{Kind: protocol.TaskStopped, Signal: exit.Signal}
	case exit.Signal != "":
		return &protocol.TaskOutcome{Kind: protocol.TaskSignal, Signal: exit.Signal}
	case exit.Cause != nil && exit.Code != 0:
		return &protocol.TaskOutcome{Kind: protocol.TaskStopped, ExitCode: &exit.Code}
	}
	return &protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: &exit.Code}
}

func failed(code string, err error) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: code, Message: err.Error()}
}
