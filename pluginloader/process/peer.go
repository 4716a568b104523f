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

// peer is the JSON-RPC connection with one process. It matches answers to calls, limits the time of
// calls, and decides when a silent process hangs. mu protects the fields below it.
//
// A call moves through two maps. It is in waiting until its answer arrives. If its caller stops
// waiting, it moves to abandoned, because the process may still be working on it. From there it
// disappears when the late answer arrives, or when the process ends.
type peer struct {
	plugin string
	limits Limits
	out    *child.Outbox
	hangs  func(why error)     // called when the plugin hangs; must end the process
	goesOn func(method string) // called when a cancelled call continues beyond grace
	grace  time.Duration       // how long a cancelled call may continue

	mu        sync.Mutex
	last      int64                 // the newest call ID
	waiting   map[int64]*waiting    // calls without an answer, by ID
	abandoned map[int64]*time.Timer // cancelled calls without an answer, by ID; the timer fires after grace
	heard     uint64                // number of messages of the plugin
	ended     error                 // why no more answers arrive; nil: they do
}

// waiting is a call without an answer.
type waiting struct {
	answer chan *message // buffered, one message; closed when the peer ends
	heard  uint64        // peer.heard when the call was sent
}

// maxAbandoned is how many cancelled calls a plugin may leave unanswered.
const maxAbandoned = 256

var errAbandoned = fmt.Errorf("left %d cancelled calls unanswered", maxAbandoned)

// newPeer returns a connection without calls. The caller sets hangs and goesOn and runs out.
func newPeer(plugin string, limits Limits, grace time.Duration) *peer {
	return &peer{
		plugin: plugin, limits: limits, grace: grace, out: child.NewOutbox(limits.Queue),
		waiting: map[int64]*waiting{}, abandoned: map[int64]*time.Timer{},
	}
}

// fail returns an Error of the plugin.
func (p *peer) fail(code Code, err error) *Error {
	return &Error{Plugin: p.plugin, Code: code, Err: err}
}

// call sends a request and waits for the result. When ctx ends, it sends a cancellation, calls told, and
// waits for linger longer. The error is the cause of ctx or an *Error: Failed for an error answer,
// TimedOut if ctx ended with child.ErrLate, or the reason of the peer's end.
func (p *peer) call(ctx context.Context, method string, params any, linger time.Duration, told func()) (json.RawMessage, error) {
	id, w, err := p.send(method, params)
	if err != nil {
		return nil, err
	}
	var m *message
	select {
	case m = <-w.answer:
	case <-ctx.Done():
		p.tell("$/cancelRequest", struct {
			ID int64 `json:"id"`
		}{id})
		told()
		if m = p.linger(id, method, w, linger); m == nil && p.alive() {
			return nil, p.late(ctx, method, w)
		}
	}
	return p.result(method, m)
}

// send queues a request and registers it.
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

// forget removes a call that was not sent.
func (p *peer) forget(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

// tell sends a notification. If it cannot be queued, the process is about to end anyway.
func (p *peer) tell(method string, params any) {
	if line, err := request(0, method, params); err == nil {
		_ = p.out.Put(line)
	}
}

// linger waits for the answer to a cancelled call, and then abandons the call. The result is nil if no
// answer came.
func (p *peer) linger(id int64, method string, w *waiting, linger time.Duration) *message {
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
	return <-w.answer // the answer arrived in between
}

// watchLocked watches an abandoned call. If it has not ended after grace, it calls overdue. If the
// plugin also sent nothing during that time and no other call waits, the plugin hangs. Otherwise
// watchLocked checks again after another grace.
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

// late returns the error of a call whose ctx ended. A plugin that sent nothing since the call may
// hang.
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

// result returns the result or the error of an answer; m is nil if the peer has ended.
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

// alive reports whether the peer takes calls.
func (p *peer) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended == nil
}

// hung returns why the plugin counts as hanging: it sent nothing since the given message and no
// other call waits, or it abandoned too many calls. nil: it does not hang.
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
	// Reasons to consider a plugin as hanging.
	errSilent = errors.New("sent nothing during the call")
	errGoesOn = errors.New("continued a cancelled call and sent nothing")
)

// errForeign means an answer to a call that does not exist.
var errForeign = errors.New("answered a call that lashd did not make")

// take hands an answer to its call. Answers to abandoned calls are dropped.
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

// end makes all calls fail with why, now and later.
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

// noise reports whether a line does not even start like a message.
func noise(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r\n")
	return len(line) == 0 || line[0] != '{'
}
