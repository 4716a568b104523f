package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"lashd/pluginloader/child"
)

// peer is the JSON-RPC conversation with one process.
type peer struct {
	plugin string
	limits Limits
	out    *child.Outbox
	hangs  func(why error)     // is told that the plugin hangs
	goesOn func(method string) // is told of a call that goes on although it was cancelled
	grace  time.Duration       // for a call to end that nobody waits for

	mu        sync.Mutex
	last      int64 // id given
	waiting   map[int64]*waiting
	abandoned map[int64]*time.Timer // by id, calls that nobody waits for any more; each is looked at when its time is over
	heard     uint64                // messages of the plugin
	ended     error                 // why there are no more answers
}

// waiting is a call that is not answered yet.
type waiting struct {
	answer chan *message // has room for one; closed: the peer has ended
	heard  uint64        // what was heard when it was sent
}

// maxAbandoned is how many calls a plugin may leave without an answer after they were cancelled.
const maxAbandoned = 256

var errAbandoned = fmt.Errorf("has left %d calls without an answer", maxAbandoned)

func newPeer(plugin string, limits Limits, grace time.Duration) *peer {
	return &peer{
		plugin: plugin, limits: limits, grace: grace, out: child.NewOutbox(limits.Queue),
		waiting: map[int64]*waiting{}, abandoned: map[int64]*time.Timer{},
	}
}

func (p *peer) fail(code Code, err error) *Error {
	return &Error{Plugin: p.plugin, Code: code, Err: err}
}

// call asks the plugin. When ctx is done it is told, and has linger to answer all the same. An error that is not the cause
// of ctx is an Error.
func (p *peer) call(ctx context.Context, method string, params any, linger time.Duration) (json.RawMessage, error) {
	id, w, err := p.send(method, params)
	if err != nil {
		return nil, err
	}
	var m *message
	select {
	case m = <-w.answer:
	case <-ctx.Done():
		if m = p.cancel(id, method, w, linger); m == nil && p.alive() {
			return nil, p.late(ctx, method, w)
		}
	}
	return p.result(method, m)
}

func (p *peer) send(method string, params any) (int64, *waiting, error) {
	p.mu.Lock()
	if p.ended != nil {
		defer p.mu.Unlock()
		return 0, nil, p.ended
	}
	p.last++
	id, w := p.last, &waiting{answer: make(chan *message, 1), heard: p.heard}
	p.waiting[id] = w
	p.mu.Unlock()
	line, err := request(id, method, params)
	if err == nil {
		err = p.out.Put(line)
	}
	if err != nil {
		p.forget(id)
		return 0, nil, p.fail(Protocol, err)
	}
	return id, w, nil
}

func (p *peer) forget(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

// tell sends a notification. One that is lost is lost with the process.
func (p *peer) tell(method string, params any) {
	if line, err := request(0, method, params); err == nil {
		_ = p.out.Put(line)
	}
}

// cancel tells the plugin that nobody waits, gives it linger, and then forgets the call; nil: there is no answer.
func (p *peer) cancel(id int64, method string, w *waiting, linger time.Duration) *message {
	p.tell("$/cancelRequest", struct {
		ID int64 `json:"id"`
	}{id})
	if linger > 0 {
		grace := time.NewTimer(linger)
		defer grace.Stop()
		select {
		case m := <-w.answer:
			return m
		case <-grace.C:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[id] == w {
		delete(p.waiting, id)
		p.watchLocked(id, func() { p.goesOn(method) })
		return nil
	}
	return <-w.answer // it came just now
}

// watchLocked looks after a call that nobody waits for any more. If it has not ended when its time is over, that is told, and then
// the plugin hangs as soon as nothing is heard from it for as long, and nobody waits for it.
func (p *peer) watchLocked(id int64, overdue func()) {
	heard := p.heard
	p.abandoned[id] = time.AfterFunc(p.grace, func() {
		p.mu.Lock()
		_, still := p.abandoned[id]
		idle := p.heard == heard && len(p.waiting) == 0
		if still && !idle {
			p.watchLocked(id, func() {})
		}
		p.mu.Unlock()
		if !still {
			return
		}
		if overdue(); idle {
			p.hangs(errGoesOn)
		}
	})
}

// late is what a call came to that nobody waits for any more.
func (p *peer) late(ctx context.Context, method string, w *waiting) error {
	cause := context.Cause(ctx)
	late := errors.Is(cause, child.ErrLate)
	if why := p.hung(w.heard); why != nil && (late || errors.Is(cause, context.DeadlineExceeded)) {
		p.hangs(why)
	}
	if !late {
		return cause
	}
	return p.fail(TimedOut, fmt.Errorf("%s: %w", method, child.ErrLate))
}

func (p *peer) result(method string, m *message) (json.RawMessage, error) {
	switch {
	case m == nil:
		p.mu.Lock()
		defer p.mu.Unlock()
		return nil, p.ended
	case m.Error != nil:
		return nil, p.fail(Failed, fmt.Errorf("%s: %w", method, m.Error))
	}
	return m.Result, nil
}

func (p *peer) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended == nil
}

// hung says that a plugin hangs from which nothing was heard since, if nobody else waits for it, or that has left too many
// calls without an answer.
func (p *peer) hung(since uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.abandoned) > maxAbandoned:
		return errAbandoned
	case p.heard == since && len(p.waiting) == 0:
		return errSilent
	}
	return nil
}

var (
	errSilent = errors.New("has said nothing since")
	errGoesOn = errors.New("goes on with a call that was cancelled, and says nothing")
)

// errForeign is an answer that nobody asked for.
var errForeign = errors.New("answers what it was not asked")

// take gives an answer to whoever waits. Answers that come too late go nowhere.
func (p *peer) take(m *message) error {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return errForeign
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.waiting[id]
	switch {
	case ok:
		delete(p.waiting, id)
		w.answer <- m
	case p.abandoned[id] != nil:
		p.abandoned[id].Stop()
		delete(p.abandoned, id)
	default:
		return errForeign
	}
	return nil
}

// hear counts a message of the plugin.
func (p *peer) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard++
}

// end fails all calls, now and later.
func (p *peer) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return
	}
	p.ended = why
	for id, w := range p.waiting {
		delete(p.waiting, id)
		close(w.answer)
	}
	for id, timer := range p.abandoned {
		delete(p.abandoned, id)
		timer.Stop()
	}
	p.out.Close()
}

// noise tells whether a line is not even meant to be a message.
func noise(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r\n")
	return len(line) == 0 || line[0] != '{'
}
