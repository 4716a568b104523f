// Package acp connects an editor that speaks the Agent Client Protocol, version 1, to a daemon. It is a client of the daemon and
// stores nothing itself. `lashd acp` calls it. Only this package uses the protocol's SDK.
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

// Config is what an agent needs. All fields are required.
type Config struct {
	// Dial connects to the daemon. If start is false, and there is none, it fails and starts none.
	Dial    func(ctx context.Context, start bool) (net.Conn, error)
	Getenv  func(string) string // where API keys are found that the daemon lacks
	Log     *slog.Logger
	Version string
}

// agent is one editor's connection.
type agent struct {
	Config
	conn   *sdk.Connection
	wire   *wire
	daemon *daemon
	ctx    context.Context // of Run: what an editor begins ends with its connection, unless it is the daemon's
	wg     sync.WaitGroup

	mu       sync.Mutex
	ready    bool
	offers   sdk.ClientCapabilities // of the editor
	sessions map[protocol.SessionID]*session
	taken    map[protocol.SessionID]chan struct{} // by who loads, resumes or closes them; closed when the last of these has
}

// Run speaks with an editor until in ends or ctx is done. Turns go on without it. Nothing but messages is written to out.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agent{Config: cfg, ctx: ctx, daemon: newDaemon(cfg), sessions: map[protocol.SessionID]*session{}, taken: map[protocol.SessionID]chan struct{}{}}
	defer a.daemon.close()
	a.wire = newWire(in, out)
	a.conn = sdk.NewConnection(a.handle, a.wire, a.wire)
	a.conn.SetLogger(cfg.Log)
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
	}
	unread := time.AfterFunc(leavePatience, a.wire.out.close) // what is being written then is not read any more
	defer unread.Stop()
	a.leave()
	cancel()
	a.wg.Wait()
	a.wire.out.close()
	return a.wire.out.failed()
}

// session is one that the editor has made, loaded or resumed on this connection.
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

// alone waits until nobody else loads, resumes or closes a session: each of them is over before the next begins, in the order in which
// they came. What comes after waits for done.
func (a *agent) alone(r *request, id protocol.SessionID) (done func()) {
	mine := make(chan struct{})
	a.mu.Lock()
	before := a.taken[id]
	a.taken[id] = mine
	a.mu.Unlock()
	r.admit()
	if before != nil {
		<-before
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.taken[id] == mine {
			delete(a.taken, id)
		}
		close(mine)
	}
}

// leave takes the editor's tools out of its sessions, which go on without it.
func (a *agent) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		a.wg.Go(s.overlay.leave)
	}
}
