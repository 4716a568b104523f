package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// TestObserversAcrossSIGKILL has observers of all kinds come and go while sessions do all that sessions do and daemons are killed. What
// each of them was told must come to what is read in the end, and what a snapshot showed to what the log tells up to there.
// LASHD_LONG=1 does so for minutes.
func TestObserversAcrossSIGKILL(t *testing.T) {
	lives := 6
	if os.Getenv("LASHD_LONG") != "" {
		lives = 150
	}
	w := newWatch(t)
	for i := range lives {
		w.live(i == lives-1)
		if t.Failed() {
			t.Fatalf("in life %d", i)
		}
	}
	w.finish()
}

// watch is a session and one that works for it, what is done in them, and who looks at that.
type watch struct {
	*world
	daemon    *daemon
	sessions  []protocol.SessionID // the child comes last
	doers     []*doer
	observers []*observer

	mu        sync.Mutex
	raw       map[protocol.SessionID]map[protocol.Seq]string
	snapshots map[protocol.SessionID][]*protocol.SessionAttachResult
	told      int
	attached  int
}

func newWatch(t *testing.T) *watch {
	w := &watch{world: newWorld(t, "allow"), raw: map[protocol.SessionID]map[protocol.Seq]string{}, snapshots: map[protocol.SessionID][]*protocol.SessionAttachResult{}}
	w.daemon = w.serve()
	p := w.dial("")
	asks := &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "shell", Action: protocol.ApproveAsk}}}
	root := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work, Approval: asks}).SessionID
	w.sessions = []protocol.SessionID{root, p.child(root, protocol.ApproveAsk)}
	for i, id := range w.sessions {
		w.raw[id] = map[protocol.Seq]string{}
		w.doers = append(w.doers, &doer{watch: w, id: id, random: rand.New(rand.NewPCG(rand.Uint64(), uint64(i))), rewinds: map[protocol.Seq]protocol.TurnID{}})
	}
	for i := range 8 {
		w.observers = append(w.observers, &observer{watch: w, id: w.sessions[i%2], way: i / 2, random: rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))})
	}
	p.conn.Close()
	return w
}

// live has everybody at work until the daemon is killed, or, at last, until there was enough of it.
func (w *watch) live(last bool) {
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	var wg sync.WaitGroup
	for _, d := range w.doers {
		wg.Go(func() { d.work(ctx) })
	}
	wg.Go(func() { w.answering(ctx) })
	for _, o := range w.observers {
		wg.Go(func() { o.look(ctx) })
	}
	time.Sleep(time.Duration(200+rand.IntN(1000)) * time.Millisecond) // when the kill comes is the point of the test
	if !last {
		w.daemon.kill()
		w.daemon = w.serve()
	}
	stop()
	wg.Wait()
}

// answering is a person, who takes a moment.
func (w *watch) answering(ctx context.Context) {
	p := w.dial("")
	defer p.conn.Close()
	for ctx.Err() == nil {
		if w.answer(p) != nil {
			return
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
	}
}

func (w *watch) answer(p *peer) error {
	open, err := try[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: w.sessions[0]})
	for _, d := range open.Data {
		respond(p, d, d.Choices[rand.IntN(len(d.Choices))]) // another one may have been quicker, and the daemon may be gone
	}
	return err
}

// seen keeps an event. The same seq always says the same, but for what was withdrawn.
func (w *watch) seen(e told) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.raw[e.SessionID][e.Seq]
	if e.Seq == 0 {
		return nil
	}
	if w.told++; ok && known == e.raw {
		return nil
	}
	if ok && e.ItemID != "" {
		return nil // the folds see whether it was withdrawn
	}
	if w.raw[e.SessionID][e.Seq] = e.raw; ok {
		return fmt.Errorf("seq %d was %s, and is now %s", e.Seq, known, e.raw)
	}
	return nil
}

// finish brings all that goes on to its end, and compares.
func (w *watch) finish() {
	p := w.dial("")
	for _, d := range w.doers {
		d.finish(p)
	}
	for _, id := range w.sessions {
		end := p.reading(id)
		if n := len(end.items); n == 0 {
			w.t.Errorf("%s: nothing was done", id)
		}
		for _, o := range w.observers {
			if o.id == id {
				o.last(end)
			}
		}
		w.compare(id, end)
	}
	w.t.Logf("reliability/I9 %d durable events were told %d times; %d attachments, %d of them snapshots; rewinds: %d and %d",
		len(w.raw[w.sessions[0]])+len(w.raw[w.sessions[1]]), w.told, w.attached, len(w.snapshots[w.sessions[0]])+len(w.snapshots[w.sessions[1]]),
		len(w.doers[0].rewinds), len(w.doers[1].rewinds))
}

// compare folds the log from its beginning, and holds each snapshot against what it has come to there.
func (w *watch) compare(id protocol.SessionID, end *reading) {
	f := newFold(id)
	for _, d := range w.doers {
		if d.id == id {
			f.rewound = func(at protocol.Seq) protocol.TurnID {
				if d.rewinds[at] == "" {
					f.breaks("nobody knows of the rewind at seq %d: %v", at, d.rewinds)
				}
				return d.rewinds[at]
			}
		}
	}
	shots := map[protocol.Seq][]*protocol.SessionAttachResult{}
	for _, r := range w.snapshots[id] {
		shots[r.Seq] = append(shots[r.Seq], r)
	}
	for _, e := range w.replay(id) {
		f.apply(e.Event)
		for _, r := range shots[f.seq] {
			f.holds(r)
		}
	}
	f.decisions = end.decisions // those below are not in the log
	if err := f.settled(end); err != nil {
		w.t.Errorf("reliability/I9 the log of %v", err)
	}
}

// holds compares a snapshot with the fold up to there.
func (f *fold) holds(r *protocol.SessionAttachResult) {
	items := f.items[max(0, len(f.items)-len(r.Items)):]
	if r.NextCursor == "" {
		items = f.items
	}
	f.same("the items of a snapshot", items, r.Items)
	f.same("the queue of a snapshot", f.queue, r.Queue)
	f.same("the inputs of a snapshot that entered", f.entered(), idsOf(r.Entered))
	f.same("the tasks of a snapshot", sortedTasks(f.tasks), sortedTasks(r.Tasks))
	f.same("the decisions of a snapshot", f.own(f.decisions), f.own(r.Decisions))
}
