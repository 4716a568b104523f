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

// inflight is a call that a server is at work on.
type inflight struct {
	*tool.Invocation
	limit time.Duration
	clock *time.Timer // ends the call; stopped while a person is asked
	asks  sync.Mutex  // held while a person is asked
	gone  atomic.Bool // the server did not take the call: it does not know the session any more
}

// underway are the calls of a life.
type underway struct {
	mu   sync.Mutex
	last int64
	all  map[string]*inflight // by the token of their progress
}

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

func (u *underway) remove(token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, token)
}

func (u *underway) find(token any) *inflight {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all[fmt.Sprint(token)]
}

// sole is the call that is under way, if all that are belong to one turn; the newest of these.
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

var errGone = errors.New("the server does not know the session any more")

// call makes a call. It is made once: again only if the server has said that it did not take it.
func (s *server) call(ctx context.Context, name string, call *tool.Invocation) (*sdk.CallToolResult, error) {
	answer, err := s.once(ctx, name, call)
	if errors.Is(err, errGone) {
		answer, err = s.once(ctx, name, call)
	}
	return answer, err
}

func (s *server) once(ctx context.Context, name string, call *tool.Invocation) (*sdk.CallToolResult, error) {
	l, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	return l.call(ctx, name, call)
}

// extra is how much longer the start of a server is waited for than it may take: it says itself why it has failed.
const extra = time.Second

// ready gives the connection, which may have to be made.
func (s *server) ready(ctx context.Context) (*life, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.pool.config.Times.Connect+extra, child.ErrLate)
	defer cancel()
	return s.super.Use(ctx)
}

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
	answer, err := l.joined().CallTool(context.WithValue(ctx, inflightKey{}, c), params)
	switch {
	case err == nil:
		return answer, nil
	case c.gone.Load():
		l.expire()
		return nil, errGone
	}
	if err = because(ctx, err); errors.Is(err, child.ErrLate) {
		checked := context.WithoutCancel(ctx)
		l.server.goes(func() { l.check(checked) })
	}
	return nil, l.failed(err)
}

// inflightKey is where the context of what is done for a call has it.
type inflightKey struct{}

// expire ends a life whose session the server has forgotten, which is no fault of it.
func (l *life) expire() {
	l.end(child.Stopped, errGone)
	l.link.cut(errGone)
}

// failed is the error of a call: with a code, and without secrets.
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
	case child.DoneWithin(l.done, whyDelay): // it has ended: there is a better reason
		return l.Reason()
	}
	return &child.Error{Plugin: l.server.end.label, Code: code, Err: &cleaned{l.server.clean(err), err}}
}

// cleaned is an error without its secrets.
type cleaned struct{ shown, under error }

func (e *cleaned) Error() string { return e.shown.Error() }

func (e *cleaned) Unwrap() error { return e.under }

// pingTime is how long a server may take to answer that it is there.
const pingTime = 5 * time.Second

// check ends a server that answers nothing at all any more.
func (l *life) check(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, pingTime, child.ErrLate)
	defer cancel()
	ctx, leave := l.bound(ctx)
	defer leave()
	if err := l.joined().Ping(ctx, nil); err != nil && errors.Is(context.Cause(ctx), child.ErrLate) {
		l.abort(child.TimedOut, errors.New("does not answer any more"))
	}
}

// progress shows how far a call is.
func (l *life) progress(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	if r.Params == nil {
		return
	}
	c := l.calls.find(r.Params.ProgressToken)
	if c == nil || c.Host == nil {
		return
	}
	c.Host.Progress(told(r.Params))
}

// told is progress in words.
func told(p *sdk.ProgressNotificationParams) string {
	far := strconv.FormatFloat(p.Progress, 'g', -1, 64)
	if p.Total > 0 {
		far += "/" + strconv.FormatFloat(p.Total, 'g', -1, 64)
	}
	if p.Message == "" {
		return far
	}
	return cut(p.Message, maxMessage) + " (" + far + ")"
}
