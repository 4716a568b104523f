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

	"lashd/internal/strictjson"
	"lashd/rpc/internal/frame"
	"lashd/rpc/protocol"
)

// conn is the connection of one client. One goroutine runs its requests in order of arrival. The waiting part of a method runs
// on a goroutine of its own.
type conn struct {
	*Server
	stream *frame.Stream
	strict bool // initialize is required
	seat   *seat
	refuse error // what the first request is answered with, if the client is to go
	ctx    context.Context
	wg     sync.WaitGroup

	client   protocol.ClientID // the fields below belong to the goroutine that does requests
	ready    bool
	noDeltas bool
	watching bool // the daemon, with server/attach
	left     func()
	subs     map[protocol.SessionID]func() // each ends one, and waits for that
	after    []func()                      // done once the answer is written

	mu       sync.Mutex
	inflight map[jsonrpc2.ID]context.CancelCauseFunc
}

// errExit ends a connection whose client sent exit.
var errExit = errors.New("exit")

// errDropped ends an idle connection that was closed to make room for another.
var errDropped = errors.New("dropped")

type job struct {
	ctx context.Context
	req *jsonrpc2.Request
}

// read passes requests to the worker until the connection ends. It handles notifications immediately, so that a cancellation
// takes effect before queued requests.
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
			return errDropped // its client is told that nothing was done
		}
		ctx, cancel := context.WithCancelCause(c.ctx)
		c.mu.Lock()
		c.inflight[req.ID] = cancel
		c.mu.Unlock()
		jobs <- job{ctx, req}
	}
}

func (c *conn) notified(req *jsonrpc2.Request) error {
	switch req.Method {
	case "exit":
		return errExit
	case "$/cancelRequest", "$/cancel_request", "notifications/cancelled":
		c.cancelRequest(req)
	}
	return nil // initialized, and whatever we do not know
}

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

// do runs a request up to its waiting part, which it returns as rest.
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
		return nil, nil, errUnbegun
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

func (c *conn) unknownMethod(name string) error {
	data := protocol.ErrorData{Kind: protocol.KindMethodNotFound, Retry: protocol.RetryNever, Outcome: protocol.EffectNone}
	data.Nearest = strictjson.Nearest(name, names(c.table))
	text := "unknown method " + strictjson.Quote(name)
	if data.Nearest != "" {
		text += "; did you mean " + data.Nearest + "?"
	}
	return newError(codeMethodNotFound, text, data)
}

// guard calls f and turns a panic into an internal error.
func (c *conn) guard(f func() (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in a request", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

func (c *conn) answer(j job, result any, err error) {
	if err != nil && errors.Is(context.Cause(j.ctx), errCancelled) {
		err = cutOff(err)
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

func ended(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, errExit) || errors.Is(err, errDropped) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF)
}
