package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"lashd/engine/plugin"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// Codes of answers to the plugin.
const (
	codeParams     = -32602
	codeMethod     = -32601
	codeInternal   = -32603
	codeOverloaded = -32001
	codeRefused    = -32010
)

// maxID is how long an id of the plugin's own may be.
const maxID = 128

// serve answers a call of the plugin, beside what else it says.
func (l *life) serve(m *message) error {
	if len(m.ID) > maxID || bytes.ContainsAny(m.ID[:1], "{[ntf") {
		return errors.New("sends a call whose id is no short number or text")
	}
	select {
	case l.busy <- struct{}{}:
	default:
		return l.answer(m, nil, &wireError{Code: codeOverloaded, Message: "too many calls at once", Data: kind("overloaded")})
	}
	var named granted
	_ = json.Unmarshal(m.Params, &named) // what is wrong with it, the method says
	g := l.grants.find(named.Grant)      // now: all grants end with the process
	l.calls.Go(func() {
		defer func() { <-l.busy }()
		result, err := l.perform(m, g)
		_ = l.answer(m, result, err) // a plugin that does not read is found out by its own calls
	})
	return nil
}

func (l *life) answer(m *message, result any, failed *wireError) error {
	return l.peer.out.Put(response(m.ID, result, failed))
}

// perform is what the plugin asks, if it was granted that; nil: it was not.
func (l *life) perform(m *message, g *grant) (result any, failed *wireError) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("a call of the plugin panicked", "method", m.Method, "panic", p, "stack", string(debug.Stack()))
			failed = &wireError{Code: codeInternal, Message: "internal error", Data: kind("internal")}
		}
	}()
	method, ok := hostMethods[m.Method]
	if !ok {
		return nil, &wireError{Code: codeMethod, Message: fmt.Sprintf("unknown method %.80q", m.Method)}
	}
	if g == nil {
		return nil, l.refuse(m, "denied", "the grant is missing, or its call has ended")
	}
	if !l.config.declares(method.needs) && g.state == nil { // what belongs to its own state is its own
		return nil, l.refuse(m, "denied", fmt.Sprintf("the plugin does not declare the capability %q", method.needs))
	}
	result, err := method.do(g.ctx, g, m.Params)
	return result, l.wireErrorOf(m, err)
}

// refuse logs what was not granted, unless there is too much of it.
func (l *life) refuse(m *message, word, reason string) *wireError {
	if l.refusals.another(refusalsPerSec) {
		l.log.Warn("a call of the plugin is refused", "method", m.Method, "kind", word, "reason", reason)
	}
	return &wireError{Code: codeRefused, Message: reason, Data: kind(word)}
}

func (l *life) wireErrorOf(m *message, err error) *wireError {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*paramsError](err); ok {
		return &wireError{Code: codeParams, Message: e.Error(), Data: kind("invalidParams")}
	}
	if e, ok := errors.AsType[*plugin.UnavailableError](err); ok {
		return l.refuse(m, "denied", e.Error())
	}
	if e, ok := errors.AsType[*plugin.ReachError](err); ok {
		return l.refuse(m, "denied", e.Error())
	}
	if e, ok := errors.AsType[worded](err); ok {
		return &wireError{Code: codeRefused, Message: e.Error(), Data: kind(string(e.Kind()))}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errOver) {
		return &wireError{Code: codeRefused, Message: errOver.Error(), Data: kind("cancelled")}
	}
	return &wireError{Code: codeRefused, Message: err.Error(), Data: kind("failed")}
}

// worded is an error with a word of its own, as clients are told it.
type worded interface {
	error
	Kind() protocol.ErrorKind
}

func kind(word string) json.RawMessage { return json.RawMessage(`{"kind":"` + word + `"}`) }

// paramsError is a call of the plugin that nobody can read.
type paramsError struct{ err error }

func (e *paramsError) Error() string { return e.err.Error() }

// tally counts what a plugin may not do without end.
type tally struct {
	mu   sync.Mutex
	rate child.Rate
}

const (
	refusalsPerSec = 100 // that are logged
	tellsPerSec    = 100 // events of tasks: each is stored, and may wake a session
)

// another tells whether one more is within what there may be in a second.
func (t *tally) another(most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rate.Allow(most)
}
