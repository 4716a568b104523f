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

// life is one connection to a server, from the start until nothing of it is left. It implements
// child.Life.
//
// A life ends in two steps. First done is closed and calls fail with why; the first reason counts.
// Then over is closed, when the process or connection and all goroutines are gone. The supervisor
// starts the next life only after that. mu protects the fields below it.
type life struct {
	server *server
	link   link
	calls  underway
	pages  pages
	began  time.Time
	errors tail          // the end of what the program wrote to stderr
	done   chan struct{} // closed when the connection takes no more calls
	over   chan struct{} // closed when nothing is left
	// samples reports whether the server may use models. It is set before the handshake.
	samples bool

	mu      sync.Mutex
	why     error              // reason for done; nil: the connection works
	session *sdk.ClientSession // nil before the handshake
	notices child.Rate         // counts requests and notifications
}

// link is the transport of a life: a program's pipes, or HTTP.
type link interface {
	sdk.Transport
	// hangUp ends the connection politely and waits a moment for the server to end.
	hangUp(ctx context.Context, l *life)
	// greeted is called once after the handshake.
	greeted(*sdk.ClientSession)
	// cut ends the connection by force. It returns at once.
	cut(why error)
}

// Limits of one connection.
const (
	maxLine    = 8 << 20                // bytes of a message
	maxQueue   = 32 << 20               // bytes that wait for the server to read
	maxNoise   = 64 << 10               // bytes on stdout that are no messages
	maxNotices = 2_000                  // requests and notifications per second
	stall      = 10 * time.Second       // how long one write to the server may take
	exitDelay  = time.Second            // wait after the end of stdout for the process to exit
	whyDelay   = 200 * time.Millisecond // wait after a failed call for the reason
	drainDelay = 100 * time.Millisecond // wait after the exit for the rest of a pipe
	heardDelay = 2 * time.Second        // wait for the rest of the output after all processes that held the pipe were ended
)

// versions lists the protocol versions to try, in order. The version that begins with initialize comes
// first, because some servers exit if the first request is another one. A server that does not know
// initialize may know a newer protocol, so the empty string lets the library choose.
var versions = []string{lastSampling, ""}

// lastSampling is the last protocol version in which sampling is not deprecated.
const lastSampling = "2025-11-25"

// launch connects the server: start or dial, handshake, list of tools. If one of these fails, it
// cleans up everything. The supervisor calls it.
func (s *server) launch(ctx context.Context) (l *life, err error) {
	for _, version := range versions {
		if l, err = s.begin(ctx, version); err == nil || !refused(err) {
			break
		}
	}
	return l, err
}

// refused reports whether a server rejected the protocol version.
func refused(err error) bool {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && (wire.Code == jsonrpc.CodeMethodNotFound || wire.Code == sdk.CodeUnsupportedProtocolVersion)
}

// begin connects with one protocol version.
func (s *server) begin(ctx context.Context, version string) (*life, error) {
	l := &life{server: s, began: time.Now(), done: make(chan struct{}), over: make(chan struct{})}
	if err := s.dial(ctx, l); err != nil {
		if child.CodeOf(err) == child.Modified {
			return nil, err
		}
		return nil, s.explained(&child.Error{Plugin: s.end.label, Code: child.Crashed, Err: s.clean(err)}, "")
	}
	list, err := l.greet(ctx, version)
	if err != nil {
		err = l.failed(err)
		l.abort(child.CodeOf(err), child.Cause(err))
		<-l.over
		l.closeSession()
		if refused(err) {
			return nil, err // with another version, it may start
		}
		return nil, s.explained(err, l.errors.text())
	}
	s.listed(context.WithoutCancel(ctx), list)
	if s.login.settled() {
		s.tell(context.WithoutCancel(ctx))
	}
	return l, nil
}

// dial starts the server's program, or prepares the HTTP link.
func (s *server) dial(ctx context.Context, l *life) error {
	if s.end.URL != "" {
		s.connect(ctx, l)
		return nil
	}
	return s.spawn(ctx, l)
}

// greet does the handshake and lists the tools, within Times.Connect. It returns the list.
func (l *life) greet(ctx context.Context, version string) (*List, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.server.pool.config.Times.Connect, child.ErrLate)
	defer cancel()
	ctx, leave := l.bound(ctx)
	defer leave()
	l.samples = version == lastSampling && l.server.end.Sampling.allowed()
	session, err := l.client().Connect(ctx, l.link, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, because(ctx, err)
	}
	l.mu.Lock()
	l.session = session
	l.mu.Unlock()
	l.link.greeted(session)
	list, err := listAll(ctx, session, l.server.warn)
	return list, because(ctx, err)
}

// because returns the cause of ctx if err comes from the end of ctx. If err is an error response of
// the server, because returns err: the connection ends right after such a response, so ctx may have
// ended as well.
func because(ctx context.Context, err error) error {
	if _, said := errors.AsType[*jsonrpc.Error](err); err != nil && !said && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// bound returns a context that also ends when l takes no more calls, with the reason as its cause.
// The caller calls the function when done.
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

// client returns the MCP client of the connection, with lashd's handlers.
func (l *life) client() *sdk.Client {
	options := &sdk.ClientOptions{
		Logger:                      quiet,
		Capabilities:                l.capabilities(),
		ElicitationHandler:          l.elicit,
		ElicitationCompleteHandler:  l.pages.complete,
		ProgressNotificationHandler: l.progress,
		ToolListChangedHandler: func(ctx context.Context, _ *sdk.ToolListChangedRequest) {
			if l.joined() != nil { // before the handshake ends, greet lists the tools anyway
				l.server.relist(ctx, l)
			}
		},
		PromptListChangedHandler: func(ctx context.Context, _ *sdk.PromptListChangedRequest) {
			if l.joined() != nil {
				l.server.relist(ctx, l)
			}
		},
	}
	if l.samples {
		options.CreateMessageWithToolsHandler = l.sample //lint:ignore SA1019 see sampling.go
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "lashd", Version: l.server.pool.config.Version}, options)
	c.AddReceivingMiddleware(l.received)
	return c
}

// end makes current and later calls fail. The first reason counts. Unless the code is Stopped, it
// tells the supervisor about a crash.
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

// abort ends the connection by force because of an error of the server.
func (l *life) abort(code child.Code, why error) {
	l.end(code, why)
	l.link.cut(why)
}

// stop asks the server to end, then forces it, and returns when nothing is left.
func (l *life) stop(ctx context.Context) {
	l.end(child.Stopped, child.ErrShutDown)
	l.link.hangUp(ctx, l)
	l.link.cut(errors.New("did not exit in time"))
	<-l.over
}

// closeSession releases what the library holds. It waits for all requests in progress.
func (l *life) closeSession() {
	if session := l.joined(); session != nil {
		_ = session.Close() // the error says how the connection ended, which is known
	}
}

// joined returns the session, or nil before the handshake.
func (l *life) joined() *sdk.ClientSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Reason returns why the connection takes no more calls; nil: it works.
func (l *life) Reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// Alive, Over and Began implement child.Life.
func (l *life) Alive() bool { return l.Reason() == nil }

func (l *life) Over() <-chan struct{} { return l.over }

func (l *life) Began() time.Time { return l.began }
