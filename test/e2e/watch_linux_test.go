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

// TestObserversAcrossSIGKILL has observers of all kinds attach and detach while sessions work and
// daemons are killed. Events received by an observer must lead to the final state, and each snapshot
// must match the log up to its number. LASHD_LONG=1 runs it for minutes.
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

// watch is a session with a subagent, the work in them, and their observers.
type watch struct {
	*world
	daemon    *daemon
	sessions  []protocol.SessionID // the subagent is last
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

// live lets everything run until the daemon is killed or, for the last one, until the time is over.
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
	time.Sleep(time.Duration(200+rand.IntN(1000)) * time.Millisecond) // vary the time of the kill
	if !last {
		w.daemon.kill()
		w.daemon = w.serve()
	}
	stop()
	wg.Wait()
}

// answering answers decisions after a moment, like a person.
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
		respond(p, d, d.Choices[rand.IntN(len(d.Choices))]) // another client may have been faster, and the daemon may have died
	}
	return err
}

// seen records an event. Events with the same number must be equal, except for withdrawn ones.
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
		return nil // the folds check whether it was withdrawn
	}
	if w.raw[e.SessionID][e.Seq] = e.raw; ok {
		return fmt.Errorf("seq %d was %s and is now %s", e.Seq, known, e.raw)
	}
	return nil
}

// finish waits for the end of all work and compares the results.
func (w *watch) finish() {
	p := w.dial("")
	for _, d := range w.doers {
		d.finish(p)
	}
	for _, id := range w.sessions {
		end := p.reading(id)
		if n := len(end.items); n == 0 {
			w.t.Errorf("%s did nothing", id)
		}
		for _, o := range w.observers {
			if o.id == id {
				o.last(end)
			}
		}
		w.compare(id, end)
	}
	w.t.Logf("reliability/I9 %d durable events were received %d times; %d attachments, %d of them snapshots; rewinds: %d and %d",
		len(w.raw[w.sessions[0]])+len(w.raw[w.sessions[1]]), w.told, w.attached, len(w.snapshots[w.sessions[0]])+len(w.snapshots[w.sessions[1]]),
		len(w.doers[0].rewinds), len(w.doers[1].rewinds))
}

// compare folds the log from its beginning and compares each snapshot with the fold at its number.
func (w *watch) compare(id protocol.SessionID, end *reading) {
	f := newFold(id)
	for _, d := range w.doers {
		if d.id == id {
			f.rewound = func(at protocol.Seq) protocol.TurnID {
				if d.rewinds[at] == "" {
					f.breaks("no client made the rewind at seq %d: %v", at, d.rewinds)
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
	f.decisions = end.decisions // decisions of subagents are not in the log
	if err := f.settled(end); err != nil {
		w.t.Errorf("reliability/I9 log: %v", err)
	}
}

// holds compares a snapshot with the fold up to its number.
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
