package lashdplugin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
)

const maxMessage = 8 << 20 // bytes; a longer one would end the plugin

// Error is an error on the wire: what lashd refuses, or what a handler wants a code of its own for.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Kind string `json:"kind,omitempty"` // denied, unavailable, invalidParams, ...
	} `json:"data,omitzero"`
}

func (e *Error) Error() string { return e.Message }

func unknown(what, name string) error {
	return &Error{Code: -32601, Message: fmt.Sprintf("there is no %s %s", what, name)}
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// heard is a message of lashd.
type heard struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// peer is the conversation with lashd.
type peer struct {
	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	last    int
	answers map[string]chan heard
	calls   map[string]context.CancelFunc // that are being answered, by id
}

// performer does what lashd asks.
type performer interface {
	perform(ctx context.Context, method string, params json.RawMessage) (any, error)
	told(method string, params json.RawMessage)
}

func newPeer(out io.Writer) *peer {
	return &peer{out: out, answers: map[string]chan heard{}, calls: map[string]context.CancelFunc{}}
}

// listen takes messages in until lashd is done.
func (p *peer) listen(in io.Reader, do performer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for lines := bufio.NewReader(in); ; {
		var m heard
		line, err := lines.ReadBytes('\n')
		if err != nil || json.Unmarshal(line, &m) != nil || m.Method == "shutdown" {
			return
		}
		p.receive(ctx, &m, do)
	}
}

func (p *peer) receive(ctx context.Context, m *heard, do performer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case m.Method == "":
		p.answers[string(m.ID)] <- *m
		delete(p.answers, string(m.ID))
	case m.ID != nil:
		ctx, cancel := context.WithCancel(ctx)
		p.calls[string(m.ID)] = cancel
		go func() {
			defer cancel()
			p.answer(ctx, m, do)
		}()
	case m.Method == "$/cancelRequest":
		var named struct{ ID json.RawMessage }
		if json.Unmarshal(m.Params, &named) == nil && p.calls[string(named.ID)] != nil {
			p.calls[string(named.ID)]()
		}
	default:
		do.told(m.Method, m.Params)
	}
}

func (p *peer) answer(ctx context.Context, m *heard, do performer) {
	result, err := contain(func() (any, error) { return do.perform(ctx, m.Method, m.Params) })
	if err == nil {
		err = p.send(message{ID: m.ID, Result: result})
	}
	if err != nil {
		failed := &Error{Code: -32000, Message: err.Error()}
		errors.As(err, &failed)
		_ = p.send(message{ID: m.ID, Error: failed}) // if that is lost, so is lashd
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, string(m.ID))
}

// contain makes an error of a panic.
func contain(f func() (any, error)) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", v, debug.Stack())
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return f()
}

func (p *peer) send(m message) error {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(line) >= maxMessage {
		return fmt.Errorf("the message has %d bytes, more than %d", len(line), maxMessage)
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err = p.out.Write(append(line, '\n'))
	return err
}

// tell sends a notification. One that is lost is lost with lashd.
func (p *peer) tell(method string, params any) { _ = p.send(message{Method: method, Params: params}) }

// ask calls lashd.
func (p *peer) ask(ctx context.Context, method string, params, result any) error {
	p.mu.Lock()
	p.last++
	id, answer := fmt.Sprintf(`"p%d"`, p.last), make(chan heard, 1)
	p.answers[id] = answer
	p.mu.Unlock()
	if err := p.send(message{ID: json.RawMessage(id), Method: method, Params: params}); err != nil {
		return err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return m.Error
		}
		if result == nil || m.Result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
