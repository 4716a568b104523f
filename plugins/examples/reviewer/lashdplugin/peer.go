package lashdplugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
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

// check ends a call with an error. Only what answers a call may use it.
func check(err error) {
	if err != nil {
		failed := &Error{Code: -32000, Message: err.Error()}
		errors.As(err, &failed)
		panic(failed)
	}
}

// message is one of lashd.
type message struct {
	ID, Params, Result JSON
	Method             string
	Error              *Error
}

// peer is the conversation with lashd.
type peer struct {
	waiting sync.Map // func(*message), by id: takes the answer to what was asked, or cancels what is answered
	asked   atomic.Int64
	writing sync.Mutex
	out     io.Writer
}

// listen takes messages in until lashd is done.
func (p *peer) listen(from io.Reader, perform func(context.Context, *message) any) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for in := json.NewDecoder(from); ; {
		m := &message{}
		if in.Decode(m) != nil || m.Method == "shutdown" {
			return
		}
		p.receive(ctx, m, perform)
	}
}

func (p *peer) receive(ctx context.Context, m *message, perform func(context.Context, *message) any) {
	switch {
	case m.Method == "":
		p.wake(m)
	case m.Method == "$/cancelRequest":
		call := &message{}
		_ = json.Unmarshal(m.Params, call) // without an id it is for nobody
		p.wake(call)
	case m.ID == nil || m.Method == "initialize": // what comes next comes after it
		p.answer(ctx, m, perform)
	default:
		ctx, cancel := context.WithCancel(ctx)
		p.waiting.Store(string(m.ID), func(*message) { cancel() })
		go p.answer(ctx, m, perform)
	}
}

func (p *peer) wake(m *message) {
	if f, waits := p.waiting.LoadAndDelete(string(m.ID)); waits {
		f.(func(*message))(m)
	}
}

func (p *peer) answer(ctx context.Context, m *message, perform func(context.Context, *message) any) {
	defer p.wake(m)
	defer func() {
		v := recover()
		failed, known := v.(*Error)
		if v != nil && !known {
			fmt.Fprintf(os.Stderr, "%v\n%s", v, debug.Stack())
			failed = &Error{Code: -32000, Message: fmt.Sprint("panic: ", v)}
		}
		if v != nil && m.ID != nil {
			_ = p.send(Object{"id": m.ID, "error": failed}) // if that is lost, so is lashd
		}
	}()
	if result := perform(ctx, m); m.ID != nil {
		check(p.send(Object{"id": m.ID, "result": result}))
	}
}

func (p *peer) send(m Object) error {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err == nil && len(line) >= maxMessage {
		err = fmt.Errorf("the message has %d bytes, more than %d", len(line), maxMessage)
	}
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err = p.out.Write(append(line, '\n'))
	return err
}

// tell sends a notification. One that is lost is lost with lashd.
func (p *peer) tell(method string, params Object) {
	_ = p.send(Object{"method": method, "params": params})
}

// ask calls lashd. Without a result nobody looks at what it answers.
func (p *peer) ask(ctx context.Context, method string, params Object, result any) error {
	id, answer := fmt.Sprint("p", p.asked.Add(1)), make(chan *message, 1)
	p.waiting.Store(`"`+id+`"`, func(m *message) { answer <- m })
	if err := p.send(Object{"id": id, "method": method, "params": params}); err != nil {
		return err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return m.Error
		}
		return json.Unmarshal(m.Result, cmp.Or(result, any(new(JSON))))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
