package acp

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"

	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

const (
	maxLosses         = 5
	lossPause         = 50 * time.Millisecond
	reconnectInterval = time.Second // between two looks whether there is a daemon again
	maxHeld           = 4 << 20     // bytes of events buffered for a session while the editor is slow; later events are requested again
)

// daemon is the agent's access to the daemon. It keeps at most one connection and
// opens the next one on demand, so that callers do not notice a restart of the
// daemon. It is safe for concurrent use.
type daemon struct {
	dial    func(ctx context.Context, start bool) (net.Conn, error)
	client  protocol.ClientID // the same on every connection, so that the editor keeps its overlay
	version string
	getenv  func(string) string
	dialing chan struct{} // a semaphore of size 1, held while connecting

	mu      sync.Mutex
	current *link // the newest connection; it may be gone connection; it may be gone
}

func newDaemon(cfg Config) *daemon {
	return &daemon{dial: cfg.Dial, client: protocol.NewClientID(), version: cfg.Version, getenv: cfg.Getenv, dialing: make(chan struct{}, 1)}
}

// link is one connection to the daemon, after initialize. Events of a session go
// into its inbox. An inbox that is full stops the subscription: the daemon is
// asked to detach, and the session later attaches again at the last event it
// handled.
type link struct {
	*client.Client
	epoch int64 // of the daemon's database; sequence numbers are comparable only within an epoch

	mu      sync.Mutex
	inboxes map[protocol.SessionID]*client.Inbox // sessions whose events are kept; other events are dropped
	leaving map[protocol.SessionID]chan struct{} // closed once the detach of an overflowed inbox has been answered
}

// gone reports whether the connection has ended. It does not block.
func (l *link) gone() bool {
	select {
	case <-l.Gone():
		return true
	default:
		return false
	}
}

// inbox returns the inbox of a session and creates it if needed. Call it before
// session/attach: an event that arrives before the inbox exists is dropped.
func (l *link) inbox(id protocol.SessionID) *client.Inbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inboxes[id] == nil {
		l.inboxes[id] = client.NewInbox(maxHeld)
	}
	return l.inboxes[id]
}

// forget drops the inbox of a session and all events in it.
func (l *link) forget(id protocol.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inboxes, id)
}

// put stores an event in its session's inbox. The client calls it on the goroutine
// that reads the connection, so it must not wait: if the inbox overflows, another
// goroutine detaches from the session.
func (l *link) put(raw json.RawMessage) {
	var of struct {
		SessionID protocol.SessionID `json:"sessionId"`
	}
	if json.Unmarshal(raw, &of) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if box := l.inboxes[of.SessionID]; box != nil && box.Put(raw) {
		gone := make(chan struct{})
		l.leaving[of.SessionID] = gone
		go func() { // ends with the connection at the latest
			defer close(gone)
			l.detach(of.SessionID) // an error shows up again when the session reattaches
		}()
	}
}

// detach ends the subscription to a session. The daemon sends no event of the
// session after its answer.
func (l *link) detach(id protocol.SessionID) error {
	return l.Call(context.Background(), "session/detach", protocol.SessionParams{SessionID: id}, nil)
}

// drop forgets the events of a session and makes sure that its subscription has
// ended. If an overflow already detached it, drop waits for that instead of
// detaching twice.
func (l *link) drop(id protocol.SessionID) error {
	l.forget(id)
	l.mu.Lock()
	gone := l.leaving[id]
	delete(l.leaving, id)
	l.mu.Unlock()
	if gone != nil {
		<-gone
		return nil
	}
	return l.detach(id)
}

// link returns an initialized connection: the current one, or a new one if that
// has ended. With start, a daemon is started if none runs. Only one goroutine
// connects at a time; the others wait for it or for ctx.
func (d *daemon) link(ctx context.Context, start bool) (*link, error) {
	select {
	case d.dialing <- struct{}{}:
		defer func() { <-d.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	l := d.current
	d.mu.Unlock()
	if l != nil && !l.gone() {
		return l, nil
	}
	for losses := 0; ; losses++ {
		l, err := d.hello(ctx, start)
		if err == nil {
			d.mu.Lock()
			d.current = l
			d.mu.Unlock()
			return l, nil
		}
		if !client.Lost(err) || losses == maxLosses {
			return nil, err
		}
		time.Sleep(lossPause) // a daemon that was killed may still take connections for a moment
	}
}

// hello opens a connection, initializes it, and passes on the API keys that the
// daemon asks for. After an error the connection is closed.
func (d *daemon) hello(ctx context.Context, start bool) (*link, error) {
	conn, err := d.dial(ctx, start)
	if err != nil {
		return nil, err
	}
	l := &link{inboxes: map[protocol.SessionID]*client.Inbox{}, leaving: map[protocol.SessionID]chan struct{}{}}
	l.Client = client.New(context.WithoutCancel(ctx), conn, l.put, nil)
	var r protocol.InitializeResult
	p := protocol.InitializeParams{ClientInfo: protocol.ClientInfo{Name: "lashd-acp", Version: d.version}, ClientID: d.client}
	if err := l.Call(ctx, "initialize", p, &r); err != nil {
		l.Close() // the error of initialize matters more
		return nil, err
	}
	l.epoch = r.Epoch
	if err := l.HandKeys(ctx, r.KeysWanted, d.getenv); err != nil {
		l.Close() // the error of passing the keys matters more
		return nil, err
	}
	return l, nil
}

// do runs on with a connection, and runs it again with the next one if the
// connection is lost or the daemon is shutting down. So on must be safe to repeat:
// it only reads, or its request carries an idempotency key. Other errors are
// returned at once.
func (d *daemon) do(ctx context.Context, on func(*link) error) error {
	for losses := 0; ; losses++ {
		l, err := d.link(ctx, true)
		if err != nil {
			return err
		}
		if err = on(l); err == nil || losses == maxLosses {
			return err
		}
		switch {
		case client.Lost(err):
			l.Close() // only the write may have failed so far; end the reader as well
		case kindOf(err) == protocol.KindShuttingDown:
			waitGone(ctx, l)
		default:
			return err
		}
	}
}

// waitGone waits until a daemon that announced its shutdown has closed the
// connection, at most reconnectInterval.
func waitGone(ctx context.Context, l *link) {
	select {
	case <-l.Gone():
	case <-ctx.Done():
	case <-time.After(reconnectInterval):
	}
}

// call calls a method of the daemon and repeats it after a lost connection; see do
// for what that requires.
func (d *daemon) call(ctx context.Context, method string, params, result any) error {
	return d.do(ctx, func(l *link) error { return l.Call(ctx, method, params, result) })
}

// close ends the connection.
func (d *daemon) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil {
		d.current.Close()
	}
}

// newMutation returns a fresh idempotency key. The daemon applies a request with
// this key at most once, however often it is repeated.
func newMutation() protocol.Mutation {
	return protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}
}
