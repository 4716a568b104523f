package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/engine"
	"lashd/internal/strictjson"
	"lashd/rpc/internal/frame"
	"lashd/rpc/protocol"
)

// conn is the connection of one client. Besides the stream's writer two goroutines serve it. The
// reader (read) parses messages and handles notifications at once. The worker (work) runs requests
// in order of arrival. The waiting part of a method, such as the end of a turn, runs on a goroutine
// of its own, so later requests are not blocked.
type conn struct {
	*Server
	stream *frame.Stream
	strict bool // the client must send initialize first
	seat   *seat
	refuse error           // response to the first request, after which the connection ends; nil: the client is admitted
	ctx    context.Context // done when the connection ends
	wg     sync.WaitGroup  // goroutines of waiting parts and subscriptions

	client   protocol.ClientID             // the fields below belong to the worker
	ready    bool                          // initialize succeeded
	noDeltas bool                          // the client asked for no deltas
	watching bool                          // subscribed to daemon events
	left     func()                        // tells the engine that the client has disconnected
	subs     map[protocol.SessionID]func() // functions that end a subscription and wait for its pump
	after    []func()                      // run once, after the next response is written

	mu sync.Mutex
	// inflight has the cancel function of each request without a response; guarded by mu.
	inflight map[jsonrpc2.ID]context.CancelCauseFunc
}

// errExit ends a connection whose client sent exit. It counts as a normal end.
var errExit = errors.New("exit")

// errDropped ends an idle connection that was closed to make room for another one.
var errDropped = errors.New("dropped")

// job is a request on its way to the worker, with its own context.
type job struct {
	ctx context.Context
	req *jsonrpc2.Request
}

// read passes requests to the worker until the connection ends. It handles notifications at once,
// so that a cancellation takes effect before queued requests. A client that sends nothing within
// Silence is disconnected.
func (c *conn) read(jobs chan<- job) error {
	defer close(jobs)
	silent := time.AfterFunc(c.Silence, func() { c.stream.Close() })
	defer silent.Stop()
	for {
		req := new(jsonrpc2.Request)
		if err := c.stream.ReadObject(req); err != nil {
			return err
		}
		silent.Stop()
		if req.Notif {
			if err := c.notified(req); err != nil {
				return err
			}
			continue
		}
		if !c.seat.begin() {
			return errDropped // the client has received the reason
		}
		ctx, cancel := context.WithCancelCause(c.ctx)
		c.mu.Lock()
		c.inflight[req.ID] = cancel
		c.mu.Unlock()
		jobs <- job{ctx, req}
	}
}

// notified handles a notification on the reader's goroutine.
func (c *conn) notified(req *jsonrpc2.Request) error {
	switch req.Method {
	case "exit":
		return errExit
	case "$/cancelRequest", "$/cancel_request", "notifications/cancelled":
		c.cancelRequest(req)
	}
	return nil // initialized, and unknown notifications
}

// cancelRequest cancels the context of the request that a notification names. An unknown id is
// ignored: the response may already be on its way.
func (c *conn) cancelRequest(req *jsonrpc2.Request) {
	var p struct {
		ID        json.RawMessage `json:"id"`
		RequestID json.RawMessage `json:"requestId"`
	}
	if req.Params == nil || json.Unmarshal(*req.Params, &p) != nil {
		return
	}
	raw := p.ID
	if len(raw) == 0 {
		raw = p.RequestID
	}
	id, ok := c.stream.Lookup(raw)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.inflight[id]; ok {
		cancel(errCancelled)
	}
}

// work runs requests one by one. It returns after the last waiting part has been started, not
// finished.
func (c *conn) work(jobs <-chan job) {
	for j := range jobs {
		result, rest, err := c.do(j)
		if rest != nil {
			c.wg.Go(func() {
				result, err := c.guard(func() (any, error) { return rest(j.ctx) })
				c.answer(j, result, err)
			})
			continue
		}
		c.answer(j, result, err)
		for _, f := range c.after {
			f()
		}
		c.after = nil
	}
}

// do runs a request up to its waiting part, which it returns as rest. It rejects requests before
// initialize, unknown methods, and requests that were cancelled while they were queued.
func (c *conn) do(j job) (result any, rest waiting, err error) {
	if c.refuse != nil {
		c.after = append(c.after, func() { c.stream.Close() })
		return nil, nil, c.refuse
	}
	m, ok := c.table[j.req.Method]
	if !ok {
		return nil, nil, c.unknownMethod(j.req.Method)
	}
	if !c.ready && !m.before && (c.strict || c.stream.Headers()) {
		return nil, nil, newError(codeInvalidRequest, "send initialize first", protocol.ErrorData{
			Kind: protocol.KindNotInitialized, Retry: protocol.RetryNever, Outcome: protocol.EffectNone,
		})
	}
	if j.ctx.Err() != nil {
		return nil, nil, notBegun(j.ctx)
	}
	var raw json.RawMessage
	if j.req.Params != nil {
		raw = *j.req.Params
	}
	result, err = c.guard(func() (any, error) {
		var r any
		var err error
		r, rest, err = m.call(j.ctx, c, raw)
		return r, err
	})
	return result, rest, err
}

// unknownMethod returns the error for a method that does not exist, with the most similar name.
func (c *conn) unknownMethod(name string) error {
	data := protocol.ErrorData{Kind: protocol.KindMethodNotFound, Retry: protocol.RetryNever, Outcome: protocol.EffectNone}
	data.Nearest = strictjson.Nearest(name, names(c.table))
	text := "unknown method " + strictjson.Quote(name)
	if data.Nearest != "" {
		text += "; did you mean " + data.Nearest + "?"
	}
	return newError(codeMethodNotFound, text, data)
}

// notBegun returns why a request did not begin whose context has ended: the client cancelled it, or the daemon stops.
func notBegun(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errCancelled) {
		return errNotStarted
	}
	return engine.ErrShuttingDown
}

// guard calls f and turns a panic into an internal error, so that one request cannot end the
// daemon.
func (c *conn) guard(f func() (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in a request", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// answer writes the response of a request. Errors without a kind become internal errors and are
// logged in full. If the result cannot be encoded, the client gets an internal error instead of no
// response.
func (c *conn) answer(j job, result any, err error) {
	if err != nil && errors.Is(context.Cause(j.ctx), errCancelled) {
		err = asCancelled(err)
	}
	c.mu.Lock()
	if cancel, ok := c.inflight[j.req.ID]; ok {
		cancel(nil)
		delete(c.inflight, j.req.ID)
	}
	c.mu.Unlock()
	resp := &jsonrpc2.Response{ID: j.req.ID}
	if err == nil {
		err = resp.SetResult(result)
	}
	if err != nil {
		wire, known := wireError(err, c.table[j.req.Method].Reads)
		if !known {
			c.log.Error("request failed", "method", j.req.Method, "error", err)
		}
		resp.Result, resp.Error = nil, wire
	}
	err = c.stream.WriteObject(resp)
	// Model output may be nested so deeply that encoding/json accepts it alone, but not inside a response.
	if _, ok := errors.AsType[*json.MarshalerError](err); ok {
		c.log.Error("could not encode the response", "method", j.req.Method, "error", err)
		resp.Result = nil
		resp.Error, _ = wireError(err, c.table[j.req.Method].Reads)
		err = c.stream.WriteObject(resp)
	}
	c.seat.end()
	if err != nil {
		c.log.Debug("could not write the response", "method", j.req.Method, "error", err)
	}
}

// ended reports whether err is a normal end of a connection.
func ended(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, errExit) || errors.Is(err, errDropped) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF)
}
