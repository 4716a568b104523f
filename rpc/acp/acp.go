// Package acp connects an editor that speaks the Agent Client Protocol, version 1,
// to a daemon. It is a client of the daemon and stores nothing itself. `lashd acp`
// calls it. Only this package uses the protocol's SDK.
//
// Two connections meet here. On the editor's side, wire reads lines from the
// editor, agent.handle answers its requests, and requests to the editor go through
// the SDK. On the daemon's side, daemon keeps one connection, reconnects after a
// restart and repeats calls by their idempotency keys. A session sits between
// them: its goroutine turns events of the daemon into updates for the editor.
package acp

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// Config is what an agent needs. All fields except Driver are required. Dial and Getenv may be
// called from any goroutine, but by only one at a time.
type Config struct {
	// Dial connects to the daemon. With start, it starts a daemon if none runs.
	// Without start, it fails if none runs.
	Dial func(ctx context.Context, start bool) (net.Conn, error)
	// Getenv looks up API keys that the daemon asks for because its own
	// environment lacks them.
	Getenv func(string) string
	// Log gets warnings that cannot be sent to the editor, such as failed
	// notifications.
	Log *slog.Logger
	// Version is reported to the editor and to the daemon.
	Version string
	// Driver is the driver of sessions that the editor creates; "" is the default
	// of the daemon. It is no config option of the protocol, because those can
	// change at any time and a session keeps its driver.
	Driver string
}

// agent is one editor's connection. Handlers of the editor's requests run on
// goroutines of their own and share it. All work that they start is counted in wg,
// so that Run returns after all of it has ended.
type agent struct {
	Config
	// conn sends requests and notifications to the editor. wire is the stream
	// below it.
	conn   *sdk.Connection
	wire   *wire
	daemon *daemon
	// ctx is that of Run. Work for the editor ends with it. Turns belong to the
	// daemon and go on.
	ctx context.Context
	wg  sync.WaitGroup

	mu       sync.Mutex
	ready    bool                            // initialize has been answered
	offers   sdk.ClientCapabilities          // capabilities of the editor, from initialize
	sessions map[protocol.SessionID]*session // sessions that the editor has open on this connection
	// claims holds, for each session that is being loaded, resumed or closed, the
	// channel that the newest of these requests closes when it has finished.
	claims map[protocol.SessionID]chan struct{}
}

// Run serves an editor until in ends or ctx is done. Turns that the editor started
// continue in the daemon. Run removes the editor's tools and MCP servers from its
// sessions before it returns, for which it waits at most leaveLimit. It writes
// only protocol messages to out, and returns the first error of writing them.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agent{Config: cfg, ctx: ctx, daemon: newDaemon(cfg), sessions: map[protocol.SessionID]*session{}, claims: map[protocol.SessionID]chan struct{}{}}
	defer a.daemon.close()
	a.wire = newWire(in, out)
	a.conn = sdk.NewConnection(a.handle, a.wire, a.wire)
	a.conn.SetLogger(cfg.Log)
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
	}
	unread := time.AfterFunc(leaveLimit, a.wire.out.close) // an editor that stopped reading must not block the shutdown
	defer unread.Stop()
	a.leave()
	cancel()
	a.wg.Wait()
	a.wire.out.close()
	return a.wire.out.failed()
}

// session returns a session that the editor created, loaded or resumed on this
// connection. All other ids are an error that the editor can act on, even if the
// daemon knows them.
func (a *agent) session(id sdk.SessionId) (*session, error) {
	if id == "" {
		return nil, noSession()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.sessions[protocol.SessionID(id)]; ok {
		return s, nil
	}
	return nil, notFound("session " + string(id) + " is not open on this connection; create, load or resume it first")
}

// claim orders requests that load, resume or close the same session. It admits the
// next message, then waits until earlier requests for this session have called
// done. The caller must call done, also after a failure.
func (a *agent) claim(r *request, id protocol.SessionID) (done func()) {
	mine := make(chan struct{})
	a.mu.Lock()
	before := a.claims[id]
	a.claims[id] = mine
	a.mu.Unlock()
	r.admit()
	if before != nil {
		<-before
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.claims[id] == mine {
			delete(a.claims, id)
		}
		close(mine)
	}
}

// leave removes the editor's tools and MCP servers from all its sessions. The
// sessions continue without them. The calls run under a.wg.
func (a *agent) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		a.wg.Go(s.overlay.leave)
	}
}
