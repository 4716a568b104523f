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
	maxLosses  = 5 // how often the daemon may go away during a call before that is no accident
	lossPause  = 50 * time.Millisecond
	stopPatrol = time.Second // between two looks whether there is a daemon again
	maxHeld    = 4 << 20     // of a session's events, in bytes, for an editor that is slow; what comes after them is asked for again
)

// daemon is the one that an agent is a client of, whichever process it is.
type daemon struct {
	dial    func(ctx context.Context, start bool) (net.Conn, error)
	client  protocol.ClientID // the same on each connection, so that the editor's tools stay its own
	version string
	getenv  func(string) string
	dialing chan struct{} // holds one while somebody connects

	mu      sync.Mutex
	current *link // the newest
}

func newDaemon(cfg Config) *daemon {
	return &daemon{dial: cfg.Dial, client: protocol.NewClientID(), version: cfg.Version, getenv: cfg.Getenv, dialing: make(chan struct{}, 1)}
}

// link is one connection to the daemon.
type link struct {
	*client.Client
	epoch int64

	mu      sync.Mutex
	inboxes map[protocol.SessionID]*client.Inbox
	leaving map[protocol.SessionID]chan struct{} // closed once the daemon says no more of them
}

// gone tells whether the connection has ended.
func (l *link) gone() bool {
	select {
	case <-l.Gone():
		return true
	default:
		return false
	}
}

// inbox gets the events of a session from now on.
func (l *link) inbox(id protocol.SessionID) *client.Inbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inboxes[id] == nil {
		l.inboxes[id] = client.NewInbox(maxHeld)
	}
	return l.inboxes[id]
}

// forget drops the events of a session.
func (l *link) forget(id protocol.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inboxes, id)
}

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
		go func() { // ends with the connection at the latest; who reads from that must not wait
			defer close(gone)
			l.detach(of.SessionID) // whoever attaches again sees what is wrong
		}()
	}
}

// detach has the daemon say no more of a session. Nothing of it comes after that.
func (l *link) detach(id protocol.SessionID) error {
	return l.Call(context.Background(), "session/detach", protocol.SessionParams{SessionID: id}, nil)
}

// drop forgets the events of a session, and has the daemon say no more of it.
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

// link is a connection that has said hello. start says whether a daemon is started if there is none.
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
		l.Close() // the failure to say hello is the news
		return nil, err
	}
	l.epoch = r.Epoch
	if err := l.HandKeys(ctx, r.KeysWanted, d.getenv); err != nil {
		l.Close() // the keys that were not taken are the news
		return nil, err
	}
	return l, nil
}

// do has something done on a connection, and once more on the next one if that is lost. So it can be repeated: it reads, or has
// an idempotency key.
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
			l.Close() // it may not have been noticed yet that nobody is there to read
		case kindOf(err) == protocol.KindShuttingDown:
			waitGone(ctx, l)
		default:
			return err
		}
	}
}

// waitGone waits for the end of a daemon that has said that it stops.
func waitGone(ctx context.Context, l *link) {
	select {
	case <-l.Gone():
	case <-ctx.Done():
	case <-time.After(stopPatrol):
	}
}

// call calls a method, whatever becomes of the daemon meanwhile.
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

// once makes a change one, however often it is asked for.
func once() protocol.Mutation {
	return protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}
}
