// Package rpc serves the client protocol of an engine: connections, the method table, and one goroutine per subscription.
// It holds no session state, so a disconnect does not affect sessions.
package rpc

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/engine"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/rpc/internal/frame"
	"lashd/rpc/protocol"
)

// Config configures a Server. Engine, Store and Log are required.
type Config struct {
	Engine    *engine.Engine
	Store     *persistence.Store
	Plugins   Plugins               // nil: no plugin directories
	Servers   *pluginloader.Servers // MCP servers of plugins; nil: no plugin directories
	Providers Providers             // nil: clients cannot set up providers
	Log       *slog.Logger
	Version   string
	Socket    string // path that server/status reports; empty on stdio
	Trace     *trace.File
	// Nonce marks the daemon's child processes. Their connections are rejected. Empty: connections
	// are not checked.
	Nonce string
	// Stop is called when a client asks the daemon to stop; nil: the request has no effect.
	Stop func()
	// Answered, if set, is called after each write to a client, from several goroutines at once.
	Answered func()
	// Silence is the time after which a client that has sent nothing is disconnected. Default: 10
	// s.
	Silence time.Duration
}

// Server serves clients of one engine. It is safe for concurrent use. It holds connections only;
// the state of sessions belongs to the engine.
type Server struct {
	Config
	eng      *engine.Engine
	log      *slog.Logger
	started  time.Time
	table    map[string]Method
	door     admission
	rejected atomic.Int32 // connections of the daemon's child processes that are being rejected
}

// New returns a server. Call Serve or Listen to serve clients.
func New(cfg Config) *Server {
	cfg.Silence = cmp.Or(cfg.Silence, 10*time.Second)
	return &Server{Config: cfg, eng: cfg.Engine, log: cfg.Log, started: time.Now(), table: Methods()}
}

// Listen serves every connection of l until ctx is done. It returns when all connections have
// ended: nil after ctx is done, else the error of Accept.
func (s *Server) Listen(ctx context.Context, l net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		at, refuse, ok := s.admit(nc)
		if !ok {
			nc.Close()
			continue
		}
		wg.Go(func() {
			if err := s.serve(ctx, at, false, refuse); err != nil {
				s.log.Warn("connection ended", "error", err)
			}
		})
	}
}

// Serve serves one client until it disconnects or ctx is done. With strict, as on stdio, the client
// must send initialize first. The connection does not count for the limits.
func (s *Server) Serve(ctx context.Context, rwc io.ReadWriteCloser, strict bool) error {
	return s.serve(ctx, s.door.addFixed(s.stream(rwc, strict)), strict, nil)
}

// stream frames the messages of a connection.
func (s *Server) stream(rwc io.ReadWriteCloser, strict bool) *frame.Stream {
	return frame.New(rwc, frame.Config{Linger: linger(strict), Written: s.Answered})
}

// serve runs a connection until the client disconnects or ctx is done, and returns after all of its
// goroutines have ended. A normal end is nil.
func (s *Server) serve(ctx context.Context, at *seat, strict bool, refuse error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer at.leave()
	c := &conn{
		Server: s, stream: at.stream, seat: at, refuse: refuse, strict: strict, ctx: ctx,
		client: protocol.NewClientID(), subs: map[protocol.SessionID]func(){},
		inflight: map[jsonrpc2.ID]context.CancelCauseFunc{},
	}
	c.left = s.eng.Clients.Connected(c.client)
	defer func() { c.left() }()
	var wg sync.WaitGroup
	wg.Go(func() { c.stream.Run(ctx) })
	jobs := make(chan job, 64)
	wg.Go(func() { c.work(jobs) })
	err := c.read(jobs)
	c.stream.Close()
	cancel()
	wg.Wait()
	c.wg.Wait()
	if ended(err) {
		return nil
	}
	return err
}

// linger returns how long the connection stays open for pending responses after the client has
// closed its side. A script on the socket may send one request and wait for a long turn. A client
// on stdio (strict) has exited when its input ends.
func linger(strict bool) time.Duration {
	if strict {
		return 2 * time.Second
	}
	return time.Hour
}
