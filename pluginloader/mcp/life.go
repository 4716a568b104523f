package mcp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/pluginloader/child"
)

// life is one connection to a server, from its beginning until nothing is left of it.
type life struct {
	server *server
	link   link
	calls  underway
	began  time.Time
	done   chan struct{} // closed when it is of no use any more
	over   chan struct{} // closed when nothing is left

	mu      sync.Mutex
	why     error              // it is of no use any more; nil: it is
	session *sdk.ClientSession // nil: the server has not shaken hands yet
	notices child.Rate
}

// link is what a life speaks through.
type link interface {
	sdk.Transport
	// hangUp lets the server know that nothing more comes, and gives it a moment.
	hangUp(ctx context.Context, l *life)
	// greeted is called once the server has shaken hands.
	greeted(*sdk.ClientSession)
	// cut ends it by force. It returns at once.
	cut(why error)
}

const (
	maxLine    = 8 << 20 // bytes of a message
	maxQueue   = 32 << 20
	maxNoise   = 64 << 10 // bytes on stdout that are no messages
	maxNotices = 2_000    // requests and notifications a second
	stall      = 10 * time.Second
	exitDelay  = time.Second            // from the end of stdout to that of the process, if it ends
	whyDelay   = 200 * time.Millisecond // from the failure of a call to the reason for it
	drainDelay = 100 * time.Millisecond // for what is left in a pipe, until somebody else is taken to hold it
	heardDelay = 2 * time.Second        // for all that it has said to be heard, once nobody holds it
)

// versions are those of the protocol that are tried, in this order: a server that does not know initialize any more may know
// what came after it. There are servers that end when they hear anything else first.
var versions = []string{"2025-11-25", ""}

// launch begins a life. If the server does not shake hands, or list its tools, nothing is left of it.
func (s *server) launch(ctx context.Context) (l *life, err error) {
	for _, version := range versions {
		if l, err = s.begin(ctx, version); err == nil || !refused(err) {
			break
		}
	}
	return l, err
}

// refused tells whether a server does not know how it was greeted.
func refused(err error) bool {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && (wire.Code == jsonrpc.CodeMethodNotFound || wire.Code == sdk.CodeUnsupportedProtocolVersion)
}

func (s *server) begin(ctx context.Context, version string) (*life, error) {
	l := &life{server: s, began: time.Now(), done: make(chan struct{}), over: make(chan struct{})}
	if err := s.dial(ctx, l); err != nil {
		if child.CodeOf(err) == child.Modified {
			return nil, err
		}
		return nil, &child.Error{Plugin: s.end.label, Code: child.Crashed, Err: s.clean(err)}
	}
	list, err := l.greet(ctx, version)
	if err != nil {
		err = l.failed(err)
		l.abort(child.CodeOf(err), child.Cause(err))
		<-l.over
		l.closeSession()
		return nil, err
	}
	s.listed(context.WithoutCancel(ctx), list)
	if s.login.settled() {
		s.tell(context.WithoutCancel(ctx))
	}
	return l, nil
}

func (s *server) dial(ctx context.Context, l *life) error {
	if s.end.URL != "" {
		s.connect(ctx, l)
		return nil
	}
	return s.spawn(ctx, l)
}

// greet shakes hands and asks for the tools.
func (l *life) greet(ctx context.Context, version string) (*List, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.server.pool.config.Times.Connect, child.ErrLate)
	defer cancel()
	ctx, leave := l.bound(ctx)
	defer leave()
	session, err := l.client().Connect(ctx, l.link, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, because(ctx, err)
	}
	l.mu.Lock()
	l.session = session
	l.mu.Unlock()
	l.link.greeted(session)
	list, err := listTools(ctx, session, l.server.warn)
	return list, because(ctx, err)
}

// because is the cause of an error, if it is that the context is done. It is not if the server has answered with an error: a connection
// whose greeting was refused is let go of at once, and may have ended by now.
func because(ctx context.Context, err error) error {
	if _, said := errors.AsType[*jsonrpc.Error](err); err != nil && !said && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// bound is a context that ends with the life, too, and its cause is why.
func (l *life) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	left := make(chan struct{})
	go func() {
		select {
		case <-l.done:
			cancel(l.Reason())
		case <-left:
		}
	}()
	return ctx, func() {
		close(left)
		cancel(nil)
	}
}

func (l *life) client() *sdk.Client {
	c := sdk.NewClient(&sdk.Implementation{Name: "lashd", Version: l.server.pool.config.Version}, &sdk.ClientOptions{
		Logger:                      quiet,
		Capabilities:                &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}},
		ElicitationHandler:          l.elicit,
		ProgressNotificationHandler: l.progress,
		ToolListChangedHandler: func(ctx context.Context, _ *sdk.ToolListChangedRequest) {
			if l.joined() != nil { // else the list is asked for anyway
				l.server.relist(ctx, l)
			}
		},
	})
	c.AddReceivingMiddleware(l.received)
	return c
}

// end lets calls fail, those under way and those that come. The first reason counts.
func (l *life) end(code child.Code, why error) {
	l.mu.Lock()
	first := l.why == nil
	if first {
		l.why = &child.Error{Plugin: l.server.end.label, Code: code, Err: l.server.clean(why)}
		close(l.done)
	}
	l.mu.Unlock()
	if first && code != child.Stopped {
		l.server.output.Add(slog.LevelWarn, "mcp server "+l.Reason().Error())
		l.server.super.Ended(l)
	}
}

// abort ends the life because of what the server did.
func (l *life) abort(code child.Code, why error) {
	l.end(code, why)
	l.link.cut(why)
}

// stop asks the server to end. It returns when nothing is left.
func (l *life) stop(ctx context.Context) {
	l.end(child.Stopped, child.ErrShutDown)
	l.link.hangUp(ctx, l)
	l.link.cut(errors.New("does not end by itself"))
	<-l.over
}

// closeSession lets go of what the library holds, which waits until all that was under way is done.
func (l *life) closeSession() {
	if session := l.joined(); session != nil {
		_ = session.Close() // it says how the connection has ended, which is known
	}
}

// joined is the session, once the server has shaken hands.
func (l *life) joined() *sdk.ClientSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Reason is why the life is of no use any more; nil: it is.
func (l *life) Reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// Alive, Over and Began are for the supervisor.
func (l *life) Alive() bool { return l.Reason() == nil }

func (l *life) Over() <-chan struct{} { return l.over }

func (l *life) Began() time.Time { return l.began }
