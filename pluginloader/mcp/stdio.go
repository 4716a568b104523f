package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
)

// program is the link to a server that lashd started, on its stdin and stdout. It implements
// sdk.Transport and sdk.Connection. One goroutine of the library calls Read.
type program struct {
	life    *life
	process *proc.Process
	mark    string // of its processes, for proc.Sweep
	pipes   child.Pipes
	said    *child.Stream // its lines in the plugin's log
	out     *child.Outbox
	in      *child.Lines
	noisy   int           // bytes on stdout that were no messages
	closed  atomic.Bool   // Close was called
	heard   chan struct{} // closed at the end of stdout
	hearing sync.Once     // closes heard
}

// spawn starts the program of a server with its limits and sandbox, and the goroutine that serves
// it. For a plugin that needs approval, it first checks that the program is the approved one.
func (s *server) spawn(ctx context.Context, l *life) error {
	if temp := s.end.Temp; temp != "" {
		if err := os.MkdirAll(temp, 0o700); err != nil {
			return err
		}
	}
	held, env, box, err := s.confinement()
	if err != nil {
		return err
	}
	said := s.output.Stream(s.end.settings.name)
	command := proc.Command{
		Argv: s.end.Argv, Path: s.end.Path, Dir: s.end.Dir, Env: env, Confine: held, Stderr: io.MultiWriter(said, &l.errors),
		Grace: s.pool.config.Times.Terminate, Drain: drainDelay, Serve: box.Serve(),
	}
	s.box.Store(box)
	release, err := s.end.approval.Ask(ctx, s.end.label, &command)
	if err != nil {
		return err
	}
	defer release()
	pipes, err := child.NewPipes()
	if err != nil {
		return err
	}
	p := &program{life: l, pipes: pipes, said: said, out: child.NewOutbox(maxQueue), in: child.NewLines(pipes.Out, maxLine), heard: make(chan struct{})}
	if nonce := s.pool.config.Nonce; nonce != "" {
		p.mark = fmt.Sprintf("%s/mcp/%s/%d", nonce, s.end.label, s.pool.starts.Add(1))
	}
	command.Nonce, command.Stdin, command.Stdout = p.mark, pipes.ItsIn, pipes.ItsOut
	p.process, err = proc.Start(ctx, command)
	pipes.CloseIts()
	if err != nil {
		pipes.CloseOurs()
		return err
	}
	l.link = p
	s.running.Go(p.run)
	return nil
}

// run serves the program until nothing of it is left, and then closes over. It writes queued
// messages, waits for the exit, and ends processes that the program left behind. The library's
// goroutine reads the output.
func (p *program) run() {
	l := p.life
	defer close(l.over)
	var streams sync.WaitGroup
	streams.Go(func() {
		if err := p.out.Run(p.pipes.In, stall, func() { l.abort(child.TimedOut, child.ErrStalled) }); err != nil && !child.DoneWithin(p.process.Done(), exitDelay) {
			l.abort(child.Protocol, errors.New("closed its stdin"))
		}
		p.pipes.In.Close() // the end of stdin asks the program to exit
	})
	exit, err := p.process.Wait()
	if err != nil {
		l.server.warn("its last output was lost: " + err.Error())
	}
	if !child.DoneWithin(p.heard, drainDelay) { // another process holds stdout, or the last output is still being read
		p.sweep()
		child.DoneWithin(p.heard, heardDelay)
	}
	p.said.Flush() // its last words may explain the end
	l.end(child.Crashed, fmt.Errorf("the program ended: %s", child.ExitText(exit)))
	p.out.Close()
	p.pipes.CloseOurs()
	streams.Wait()
	l.closeSession()
	p.sweep()
}

// sweep ends processes that left the program's process group. It finds them by the mark in their
// environment, so it misses a process that has changed its environment.
func (p *program) sweep() {
	if p.mark == "" {
		return
	}
	if pids, err := proc.Sweep(p.mark); err != nil || len(pids) > 0 {
		p.life.server.warn(fmt.Sprintf("processes outlived it: %v %v", pids, err))
	}
}

// greeted has nothing to do: run notices the end of the program.
func (p *program) greeted(*sdk.ClientSession) {}

// hangUp closes stdin, which asks the program to exit, and waits at most Times.Stop.
func (p *program) hangUp(ctx context.Context, l *life) {
	p.out.Close()
	timer := time.NewTimer(l.server.pool.config.Times.Stop)
	defer timer.Stop()
	select {
	case <-l.over:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// cut ends the process group with SIGTERM, and with SIGKILL after Times.Terminate.
func (p *program) cut(why error) { p.process.Stop(why) }

// Connect implements sdk.Transport.
func (p *program) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID implements sdk.Connection.
func (p *program) SessionID() string { return "" }

// Write implements sdk.Connection. It queues the message and does not wait for the program to read.
// A program that lets its queue fill up is ended.
func (p *program) Write(_ context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if err = p.out.Put(append(line, '\n')); err != nil {
		p.life.abort(child.TimedOut, err)
	}
	return err
}

// Close implements sdk.Connection. Nothing more is sent or read.
func (p *program) Close() error {
	p.closed.Store(true)
	p.out.Close()
	p.pipes.Out.Close()
	return nil
}

// Read implements sdk.Connection. Lines that are no messages go to the log, up to a limit.
func (p *program) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := p.in.Next()
		if errors.Is(err, io.EOF) {
			p.silent()
			return nil, io.EOF
		}
		var m jsonrpc.Message
		if err == nil {
			m, err = p.message(bytes.Clone(line))
		}
		if err != nil {
			p.life.abort(child.Protocol, err)
			return nil, err
		}
		if m != nil {
			return m, nil
		}
	}
}

// message returns the message in a line, or nil for noise.
func (p *program) message(line []byte) (jsonrpc.Message, error) {
	if !looksLikeMessage(line) {
		if p.noisy += len(line); p.noisy > maxNoise {
			return nil, fmt.Errorf("wrote lines to stdout that are no messages: %s", p.shown(line))
		}
		p.said.Add(slog.LevelInfo, strings.TrimRight(string(line), "\r\n"))
		return nil, nil
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, fmt.Errorf("sent %s, which is not a JSON-RPC message: %w", p.shown(line), err)
	}
	return m, nil
}

// shown returns the start of a line without secrets.
func (p *program) shown(line []byte) string {
	text := p.life.server.end.hide.Replace(string(line))
	return strconv.Quote(text[:min(len(text), 80)])
}

// looksLikeMessage reports whether a line is meant as a message: an object with the member jsonrpc, or broken
// JSON that starts like an object. Programs that log in JSON do not have that member.
func looksLikeMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	var m struct {
		Version *json.RawMessage `json:"jsonrpc"`
	}
	return json.Unmarshal(line, &m) != nil || m.Version != nil
}

// silent handles the end of stdout. A program that exits soon after it is fine. A program that
// keeps running without stdout can never answer, so silent ends it.
func (p *program) silent() {
	p.hearing.Do(func() { close(p.heard) })
	if !p.closed.Load() && p.life.Alive() && !child.DoneWithin(p.process.Done(), exitDelay) {
		p.life.abort(child.Protocol, errors.New("closed its stdout"))
	}
}
