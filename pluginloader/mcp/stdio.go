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

// program is a server that is spoken to on its stdin and stdout. It is the library's connection, too.
type program struct {
	life    *life
	process *proc.Process
	mark    string // of its processes
	pipes   child.Pipes
	out     *child.Outbox
	in      *child.Lines
	noisy   int
	closed  atomic.Bool   // by the library
	heard   chan struct{} // closed at the end of its stdout
	hearing sync.Once
}

// spawn starts the program.
func (s *server) spawn(ctx context.Context, l *life) error {
	if temp := s.end.Temp; temp != "" {
		if err := os.MkdirAll(temp, 0o700); err != nil {
			return err
		}
	}
	command := proc.Command{
		Argv: s.end.Argv, Path: s.end.Path, Dir: s.end.Dir, Env: s.end.Env, Confine: s.end.Held, Stderr: s.output,
		Grace: s.pool.config.Times.Terminate, Drain: drainDelay,
	}
	release, err := s.end.approval.Ask(ctx, s.end.label, &command)
	if err != nil {
		return err
	}
	defer release()
	pipes, err := child.NewPipes()
	if err != nil {
		return err
	}
	p := &program{life: l, pipes: pipes, out: child.NewOutbox(maxQueue), in: child.NewLines(pipes.Out, maxLine), heard: make(chan struct{})}
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

// run serves the program until nothing is left of it.
func (p *program) run() {
	l := p.life
	defer close(l.over)
	var streams sync.WaitGroup
	streams.Go(func() {
		if err := p.out.Run(p.pipes.In, stall, func() { l.abort(child.TimedOut, child.ErrStalled) }); err != nil && !child.DoneWithin(p.process.Done(), exitDelay) {
			l.abort(child.Protocol, errors.New("has closed its stdin"))
		}
		p.pipes.In.Close() // the end of its stdin asks the program to end
	})
	exit, err := p.process.Wait()
	if err != nil {
		l.server.warn("its output was lost: " + err.Error())
	}
	if !child.DoneWithin(p.heard, drainDelay) { // somebody holds its stdout, or what it has said last is still being heard
		p.sweep()
		child.DoneWithin(p.heard, heardDelay)
	}
	l.end(child.Crashed, fmt.Errorf("has ended: %s", child.ExitText(exit)))
	p.out.Close()
	p.pipes.CloseOurs()
	streams.Wait()
	l.closeSession()
	p.sweep()
}

// sweep ends what has left the program's group. A process that has lost its environment is not found.
func (p *program) sweep() {
	if p.mark == "" {
		return
	}
	if pids, err := proc.Sweep(p.mark); err != nil || len(pids) > 0 {
		p.life.server.warn(fmt.Sprintf("processes outlived it: %v %v", pids, err))
	}
}

func (p *program) greeted(*sdk.ClientSession) {}

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

func (p *program) cut(why error) { p.process.Stop(why) }

// Connect implements sdk.Transport.
func (p *program) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID implements sdk.Connection.
func (p *program) SessionID() string { return "" }

// Write implements sdk.Connection. It does not wait until the program has read.
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

// Close implements sdk.Connection: the program gets no more, and is heard no more.
func (p *program) Close() error {
	p.closed.Store(true)
	p.out.Close()
	p.pipes.Out.Close()
	return nil
}

// Read implements sdk.Connection. What is no message goes to the log, up to a limit.
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

// message is the message in a line. There is none, and no error, in what is noise.
func (p *program) message(line []byte) (jsonrpc.Message, error) {
	if !spoken(line) {
		if p.noisy += len(line); p.noisy > maxNoise {
			return nil, fmt.Errorf("writes on stdout what is no message: %s", p.shown(line))
		}
		p.life.server.output.Add(slog.LevelInfo, strings.TrimRight(string(line), "\r\n"))
		return nil, nil
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, fmt.Errorf("sends %s, which is no message: %w", p.shown(line), err)
	}
	return m, nil
}

// shown is the beginning of a line, without secrets.
func (p *program) shown(line []byte) string {
	text := p.life.server.end.hide.Replace(string(line))
	return strconv.Quote(text[:min(len(text), 80)])
}

// spoken tells whether a line is meant as a message. Programs that log in JSON do not say jsonrpc in it.
func spoken(line []byte) bool {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	var m struct {
		Version *json.RawMessage `json:"jsonrpc"`
	}
	return json.Unmarshal(line, &m) != nil || m.Version != nil
}

// silent hears the end of stdout.
func (p *program) silent() {
	p.hearing.Do(func() { close(p.heard) })
	if !p.closed.Load() && p.life.Alive() && !child.DoneWithin(p.process.Done(), exitDelay) {
		p.life.abort(child.Protocol, errors.New("has closed its stdout"))
	}
}
