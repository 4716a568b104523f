package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"lashd/engine/schedule"
	"lashd/internal/glob"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// triggers own what is to be done when something happens outside, and see to it that it is. All of it belongs to one
// goroutine, that of run; everybody else sends it short functions. It commits, then changes memory. It waits for the store
// and for nothing else: deliveries are made, and files looked at, beside it.
type triggers struct {
	eng    *Engine
	mail   chan func(context.Context)
	gone   chan struct{} // closed once nothing is taken any more
	known  map[protocol.TriggerID]*trigger
	last   int64 // row of the newest
	timer  *time.Timer
	retry  time.Time // when to look at schedules again after a failure; zero: there was none
	out    outbox
	files  fileWatch
	types  eventTypes
	beside sync.WaitGroup
	life   context.Context // of what is done beside it; set before anything is
}

// trigger is a trigger at work.
type trigger struct {
	persistence.Trigger
	schedule *schedule.Schedule // of cron.tick
	since    time.Time          // up to when it was seen to
	next     time.Time          // when it is due
	glob     glob.Glob          // of file.changed
	seen     fileStamps         // the files as they were when they were looked at last; nil: they were not
	problem  string             // with its files
}

// tickPatience is how long the clock is not looked at: it may be set, and stands still for timers while the machine sleeps.
const tickPatience = 30 * time.Second

func newTriggers(e *Engine) *triggers {
	t := &triggers{eng: e, mail: make(chan func(context.Context)), gone: make(chan struct{}), known: map[protocol.TriggerID]*trigger{}, timer: stoppedTimer()}
	t.out.lanes = map[protocol.SessionID]time.Time{}
	return t
}

// start reads what there is to be done, and has it done until ctx is done or stop is called, which waits until nothing is left
// running.
func (t *triggers) start(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	t.life = ctx
	if err := t.load(ctx); err != nil {
		cancel()
		t.beside.Wait()
		close(t.gone)
		return func() {}, unlessDone(ctx, err)
	}
	go t.run()
	return func() { cancel(); <-t.gone }, nil
}

func (t *triggers) run() {
	defer close(t.gone)
	defer t.timer.Stop()
	defer t.beside.Wait()
	kept := context.WithoutCancel(t.life) // what is begun is brought to its end
	for {
		t.arm()
		t.send()
		select {
		case f := <-t.mail:
			f(kept)
		case <-t.timer.C:
			t.guarded(func() { t.tick(kept) })
		case dirs := <-t.files.changes():
			t.look(dirs)
		case <-t.life.Done():
			return
		}
	}
}

func (t *triggers) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			_ = t.eng.panicked("triggers", "", p) // it is logged
			t.retry = time.Now().Add(spaceCheck)
		}
	}()
	f()
}

// load reads what there is to be done, also what an earlier run has left undone.
func (t *triggers) load(ctx context.Context) error {
	stored, err := t.eng.store.Triggers(ctx)
	if err != nil {
		return err
	}
	for _, row := range stored {
		w := &trigger{Trigger: row}
		if err := w.equip(time.Now()); err != nil {
			t.eng.Log.Error("trigger is not at work", "trigger", row.ID, "key", row.Key, "error", err)
			w.Enabled, w.Problem = false, err.Error()
		}
		t.adopt(w)
	}
	t.out.waiting, err = t.eng.store.ReservedDeliveries(ctx)
	return err
}

// equip makes of what is stored what is needed at work.
func (w *trigger) equip(now time.Time) error {
	switch {
	case w.Source.Cron != nil:
		s, err := schedule.Parse(*w.Source.Cron, now)
		if err != nil {
			return err
		}
		w.schedule, w.since = &s, time.UnixMilli(w.TickedMs)
	case w.Source.File != nil:
		g, err := glob.Compile(w.Source.File.Glob)
		if err != nil {
			return err
		}
		w.glob = g
	}
	return nil
}

// adopt takes a trigger to work, in place of what it was.
func (t *triggers) adopt(w *trigger) {
	t.known[w.ID], t.last = w, max(t.last, w.Row)
	w.plan(time.Now())
	t.rewatch()
	if w.Source.File != nil && t.files.dirs[w.Source.File.Dir] != nil {
		t.look([]string{w.Source.File.Dir}) // whoever is looking does not look for it
	}
}

// drop forgets triggers.
func (t *triggers) drop(which func(*trigger) bool) {
	for id, w := range t.known {
		if which(w) {
			delete(t.known, id)
		}
	}
	t.rewatch()
}

// inTriggers runs f on the goroutine of the triggers. Once it runs, it runs to its end whatever happens to ctx.
func inTriggers[T any](ctx context.Context, e *Engine, f func(context.Context, *triggers) (T, error)) (T, error) {
	var zero T
	t := e.triggers
	done := make(chan answer[T], 1)
	select {
	case t.mail <- func(ctx context.Context) { done <- containedIn(ctx, t, f) }:
	case <-t.gone:
		return zero, ErrShuttingDown
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
	return answered(ctx, done)
}

func containedIn[T any](ctx context.Context, t *triggers, f func(context.Context, *triggers) (T, error)) (a answer[T]) {
	defer func() {
		if p := recover(); p != nil {
			a.err = t.eng.panicked("triggers", "", p)
		}
	}()
	a.v, a.err = f(ctx, t)
	return a
}

// tell has the goroutine of the triggers do something with what was done beside it.
func (t *triggers) tell(f func(context.Context)) {
	select {
	case t.mail <- func(ctx context.Context) { t.guarded(func() { f(ctx) }) }:
	case <-t.life.Done():
	}
}

// find is the trigger of an owner with a key.
func (t *triggers) find(owner protocol.SessionID, key string) *trigger {
	for _, w := range t.known {
		if w.SessionID == owner && w.Key == key {
			return w
		}
	}
	return nil
}

// inOrder are all triggers in the order in which they were made.
func (t *triggers) inOrder() []*trigger {
	all := make([]*trigger, 0, len(t.known))
	for _, w := range t.known {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *trigger) int { return cmp.Compare(a.Row, b.Row) })
	return all
}

// public is the trigger as clients see it.
func (w *trigger) public() protocol.Trigger {
	p := w.Trigger.Trigger
	p.Problem = cmp.Or(p.Problem, w.problem)
	if !w.next.IsZero() {
		p.NextAtMs = w.next.UnixMilli()
	}
	return p
}

// target is the session that an occurrence comes to.
func (w *trigger) target(id protocol.OccurrenceID) protocol.SessionID {
	if w.Action.Kind == protocol.TriggerStarts {
		return protocol.DeriveSessionID("trigger", string(w.ID), string(id))
	}
	return cmp.Or(w.Action.SessionID, w.SessionID)
}
