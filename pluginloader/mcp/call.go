package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/tool"
	"lashd/pluginloader/child"
)

// inflight is a tool call that a server is working on.
type inflight struct {
	*tool.Invocation
	limit time.Duration
	clock *time.Timer // ends the call at its limit; stopped while a user is asked
	asks  sync.Mutex  // held while a user is asked
	gone  atomic.Bool // the server rejected the call because it no longer knows the session
}

// underway holds the calls of one connection. The methods are safe for concurrent use.
type underway struct {
	mu   sync.Mutex
	last int64                // the newest token
	all  map[string]*inflight // by progress token
}

// add registers a call and returns its progress token.
func (u *underway) add(c *inflight) (token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last++
	token = strconv.FormatInt(u.last, 10)
	if u.all == nil {
		u.all = map[string]*inflight{}
	}
	u.all[token] = c
	return token
}

// remove forgets a call that has ended.
func (u *underway) remove(token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, token)
}

// find returns the call with a token, which may have the wrong type; nil: none.
func (u *underway) find(token any) *inflight {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all[fmt.Sprint(token)]
}

// sole returns the newest call in progress if all calls belong to one turn, otherwise nil.
func (u *underway) sole() (sole *inflight) {
	u.mu.Lock()
	defer u.mu.Unlock()
	newest := int64(0)
	for token, c := range u.all {
		if sole != nil && (c.SessionID != sole.SessionID || c.TurnID != sole.TurnID) {
			return nil
		}
		if n, _ := strconv.ParseInt(token, 10, 64); n > newest {
			newest, sole = n, c
		}
	}
	return sole
}

// errGone means that the server did not take a call, so it is safe to repeat.
var errGone = errors.New("the server no longer knows the session")

// call runs a tool call. It repeats the call only if the server reported that it did not take it.
func (s *server) call(ctx context.Context, name string, call *tool.Invocation) (*sdk.CallToolResult, error) {
	answer, err := s.once(ctx, name, call)
	if errors.Is(err, errGone) {
		answer, err = s.once(ctx, name, call)
	}
	return answer, err
}

// once connects if needed and sends the call once.
func (s *server) once(ctx context.Context, name string, call *tool.Invocation) (*sdk.CallToolResult, error) {
	l, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	return l.call(ctx, name, call)
}

// extra is how much longer than Times.Connect a call waits for a start, so that the start's own
// error arrives first.
const extra = time.Second

// ready returns the connection and connects first if needed. It waits at most a little longer than
// Times.Connect.
func (s *server) ready(ctx context.Context) (*life, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.pool.config.Times.Connect+extra, child.ErrLate)
	defer cancel()
	return s.super.Use(ctx)
}

// call sends one tool call and waits for the result, at most the server's limit. The time in which
// a user answers a question of the server does not count. After a timeout, it checks in the
// background whether the server still answers, and ends the connection if not.
func (l *life) call(ctx context.Context, name string, call *tool.Invocation) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, leave := l.bound(ctx)
	defer leave()
	c := &inflight{Invocation: call, limit: l.server.end.Call}
	c.clock = time.AfterFunc(c.limit, func() { cancel(child.ErrLate) })
	defer c.clock.Stop()
	token := l.calls.add(c)
	defer l.calls.remove(token)
	params := &sdk.CallToolParams{Name: name, Arguments: call.Args}
	params.SetProgressToken(token)
	answer, err := l.send(context.WithValue(ctx, inflightKey{}, c), c, params)
	_, described := errors.AsType[*child.Error](err)
	switch {
	case err == nil:
		return answer, nil
	case c.gone.Load():
		l.expire()
		return nil, errGone
	case described:
		return nil, err
	}
	if err = because(ctx, err); errors.Is(err, child.ErrLate) {
		checked := context.WithoutCancel(ctx)
		l.server.goes(func() { l.check(checked) })
	}
	return nil, l.failed(err)
}

// send sends a call. If the server requires pages to be opened before it takes the call, send asks the user for them, and sends the call
// once more.
func (l *life) send(ctx context.Context, c *inflight, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	answer, err := l.joined().CallTool(ctx, params)
	refusal, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refusal.Code != sdk.CodeURLElicitationRequired || c.Host == nil {
		return answer, err
	}
	if err := l.required(ctx, c, refusal); err != nil {
		return nil, err
	}
	return l.joined().CallTool(ctx, params)
}

// inflightKey is the context key of the inflight call that a request belongs to.
type inflightKey struct{}

// expire ends a connection whose session the server has forgotten. It does not count as a crash,
// and the next use connects again without a delay.
func (l *life) expire() {
	l.end(child.Stopped, errGone)
	l.link.cut(errGone)
}

// failed returns the error of a call as a *child.Error, with a code and without secrets. If the
// connection is about to end, it waits briefly for the reason, which says more than a broken pipe.
func (l *life) failed(err error) error {
	if _, ok := errors.AsType[*child.Error](err); ok {
		return err
	}
	code := child.Crashed
	_, said := errors.AsType[*jsonrpc.Error](err)
	switch {
	case errors.Is(err, child.ErrLate):
		code = child.TimedOut
	case said:
		code = child.Failed
	case child.DoneWithin(l.done, whyDelay): // the connection ended, which is the better reason
		return l.Reason()
	}
	return &child.Error{Plugin: l.server.end.label, Code: code, Err: &cleaned{l.server.clean(err), err}}
}

// cleaned is an error whose text contains no secrets. The original error stays in its chain.
type cleaned struct{ shown, under error }

func (e *cleaned) Error() string { return e.shown.Error() }

func (e *cleaned) Unwrap() error { return e.under }

// pingTime is the time limit of a ping.
const pingTime = 5 * time.Second

// check pings the server and ends the connection if it does not answer.
func (l *life) check(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, pingTime, child.ErrLate)
	defer cancel()
	ctx, leave := l.bound(ctx)
	defer leave()
	if err := l.joined().Ping(ctx, nil); err != nil && errors.Is(context.Cause(ctx), child.ErrLate) {
		l.abort(child.TimedOut, errors.New("no longer answers"))
	}
}

// progress shows the progress of a call to clients.
func (l *life) progress(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	if r.Params == nil {
		return
	}
	c := l.calls.find(r.Params.ProgressToken)
	if c == nil || c.Host == nil {
		return
	}
	c.Host.Progress(progressText(r.Params))
}

// progressText describes progress in words.
func progressText(p *sdk.ProgressNotificationParams) string {
	far := strconv.FormatFloat(p.Progress, 'g', -1, 64)
	if p.Total > 0 {
		far += "/" + strconv.FormatFloat(p.Total, 'g', -1, 64)
	}
	if p.Message == "" {
		return far
	}
	return cut(p.Message, maxMessage) + " (" + far + ")"
}
