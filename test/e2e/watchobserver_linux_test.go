package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"lashd/rpc/protocol"
)

// The ways to observe a session.
const (
	withCursor = iota // continues after its last event
	fromZero          // replays the whole log
	bySnapshot
	slowly // continues after its last event, and reads slowly
)

// observer observes a session repeatedly and folds the events.
type observer struct {
	*watch
	id     protocol.SessionID
	way    int
	random *rand.Rand
	has    *fold
	inbox  *inbox // of the newest attachment
}

// inbox holds the events received on a connection.
type inbox struct {
	mu  sync.Mutex
	all []told
}

func (i *inbox) put(e told) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, e)
}

func (i *inbox) take() []told {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.all
	i.all = nil
	return all
}

// look attaches and stays for a while, until ctx is done or the daemon has died.
func (o *observer) look(ctx context.Context) {
	for ctx.Err() == nil {
		if err := o.visit(ctx, time.Duration(o.random.IntN(400))*time.Millisecond); err != nil {
			o.t.Errorf("reliability/I9 observer, way %d: %v", o.way, err)
			return
		}
	}
}

// visit is one attachment. An error means that the events were wrong.
func (o *observer) visit(ctx context.Context, stay time.Duration) error {
	p := o.dial("")
	defer p.conn.Close()
	r := o.attach(p)
	if r == nil {
		return o.broken()
	}
	left := time.After(stay)
	for {
		o.take()
		if o.has.stale || len(o.has.broken) > 0 {
			return o.broken()
		}
		select {
		case <-left:
			return nil
		case <-ctx.Done():
			return nil
		case <-p.conn.DisconnectNotify():
			o.take()
			return o.broken()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// note keeps snapshots, which are compared with the log at the end.
func (o *observer) note(r *protocol.SessionAttachResult, snapshot bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.attached++; snapshot {
		o.snapshots[o.id] = append(o.snapshots[o.id], r)
	}
}

func (o *observer) broken() error {
	if len(o.has.broken) > 0 {
		return o.has.broken[0]
	}
	return nil
}

// attach attaches to the session; nil means that the daemon has died.
func (o *observer) attach(p *peer) *protocol.SessionAttachResult {
	inbox := &inbox{}
	o.inbox = inbox
	p.hear(func(e told) {
		if o.way == slowly {
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		}
		inbox.put(e)
	})
	if o.has == nil || o.way == fromZero || o.way == bySnapshot {
		o.has = newFold(o.id)
	}
	params := protocol.SessionAttachParams{SessionID: o.id}
	snapshot := o.way == bySnapshot || o.has.stale || o.has.seq == 0 && o.way != fromZero
	if o.way == fromZero {
		o.has.rewound = func(protocol.Seq) protocol.TurnID { return "" } // its rewinds are not compared then
	}
	if !snapshot {
		seq := o.has.seq
		params.AfterSeq = &seq
	}
	r, err := try[protocol.SessionAttachResult](p, "session/attach", params)
	if err != nil {
		return nil
	}
	if r.Gap != nil {
		o.has.breaks("a gap: %+v", r.Gap)
	}
	o.note(&r, snapshot)
	o.has.attached(&r, snapshot)
	return &r
}

// take folds the received events.
func (o *observer) take() {
	for _, e := range o.inbox.take() {
		if err := o.seen(e); err != nil {
			o.has.breaks("%w", err)
		}
		if o.has.stale {
			return
		}
		o.has.apply(e.Event)
	}
}

// last reads to the end and compares the fold with the final state.
func (o *observer) last(end *reading) {
	if o.way == fromZero {
		return
	}
	for deadline := time.Now().Add(patience); ; {
		if err := o.visitUntil(end.session.Seq); err != nil {
			o.t.Errorf("reliability/I9 observer, way %d: %v", o.way, err)
			return
		}
		if o.has.seq >= end.session.Seq && !o.has.stale {
			break
		}
		if time.Now().After(deadline) {
			o.t.Errorf("reliability/I9 observer, way %d, is at seq %d of %d", o.way, o.has.seq, end.session.Seq)
			return
		}
	}
	if err := o.has.settled(end); err != nil {
		o.t.Errorf("reliability/I9 observer, way %d: %v", o.way, err)
	}
}

func (o *observer) visitUntil(seq protocol.Seq) error {
	p := o.dial("")
	defer p.conn.Close()
	if o.attach(p) == nil {
		return fmt.Errorf("cannot attach")
	}
	for began := time.Now(); o.has.seq < seq && !o.has.stale && time.Since(began) < patience; time.Sleep(time.Millisecond) {
		o.take()
	}
	return o.broken()
}
