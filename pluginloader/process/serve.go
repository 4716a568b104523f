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

// JSON-RPC error codes of answers to the plugin.
const (
	codeParams     = -32602
	codeMethod     = -32601
	codeInternal   = -32603
	codeOverloaded = -32001
	codeRefused    = -32010
)

// maxID is the maximum length of a request ID of the plugin, in bytes.
const maxID = 128

// serve answers a request of the plugin on its own goroutine, so that a slow request does not block
// the reader. An error ends the process. The grant is looked up before the goroutine starts,
// because all grants end with the process. Beyond Limits.Calls, requests are rejected as
// overloaded.
func (l *life) serve(m *message) error {
	if len(m.ID) > maxID || bytes.ContainsAny(m.ID[:1], "{[ntf") {
		return errors.New("sent a request whose id is not a short number or string")
	}
	select {
	case l.busy <- struct{}{}:
	default:
		return l.answer(m, nil, &wireError{Code: codeOverloaded, Message: "too many calls at once", Data: kind("overloaded")})
	}
	var named granted
	_ = json.Unmarshal(m.Params, &named) // the method reports invalid parameters
	g := l.grants.find(named.Grant)      // now, because all grants end with the process
	l.calls.Go(func() {
		defer func() { <-l.busy }()
		result, err := l.perform(m, g)
		g.settle()
		_ = l.answer(m, result, err) // lashd's own calls detect a plugin that does not read
	})
	return nil
}

// answer queues an answer to a request.
func (l *life) answer(m *message, result any, failed *wireError) error {
	return l.peer.out.Put(response(m.ID, result, failed))
}

// perform carries out a request under a grant; g is nil if the grant is not valid.
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
	if !l.config.declares(method.needs) && g.state == nil { // artifacts of its own state need no capability
		return nil, l.refuse(m, "denied", fmt.Sprintf("the plugin does not declare the capability %q", method.needs))
	}
	result, err := method.do(g.ctx, g, m.Params)
	return result, l.wireErrorOf(m, err)
}

// refuse rejects a request and logs that, up to a rate.
func (l *life) refuse(m *message, word, reason string) *wireError {
	if l.refusals.another(refusalsPerSec) {
		l.log.Warn("rejected a request of the plugin", "method", m.Method, "kind", word, "reason", reason)
	}
	return &wireError{Code: codeRefused, Message: reason, Data: kind(word)}
}

// wireErrorOf converts an error to an answer. The kind lets the plugin decide what to do:
// invalidParams and denied are its own mistakes, cancelled means that the call has ended, and
// failed is everything else.
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

// worded is an error with a kind, the same that clients get.
type worded interface {
	error
	Kind() protocol.ErrorKind
}

// kind returns the data of an answer's error.
func kind(word string) json.RawMessage { return json.RawMessage(`{"kind":"` + word + `"}`) }

// paramsError is an error in the parameters of a request.
type paramsError struct{ err error }

func (e *paramsError) Error() string { return e.err.Error() }

// tally counts events per second. It is safe for concurrent use.
type tally struct {
	mu   sync.Mutex
	rate child.Rate
}

// Events per second.
const (
	refusalsPerSec = 100 // log lines about rejected requests
	tellsPerSec    = 100 // task events; each is stored and may wake a session
)

// another counts an event and reports whether it is within the limit.
func (t *tally) another(most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rate.Allow(most)
}
