package trigger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// loop owns the triggers in memory. All fields belong to the goroutine of run; other
// goroutines send it short functions through mail. Each change is committed first and
// applied to memory afterwards. The goroutine waits only for the store: deliveries and file
// scans run in goroutines of their own and post their results.
type loop struct {
	Config
	// mail receives functions to run. Sending blocks until run takes the function, so a
	// completed send means that it will run.
	mail chan func(context.Context)
	// gone is closed when mail is no longer received. err and triggers may be read after
	// that.
	gone chan struct{}
	// err is the reason why the triggers could not be loaded.
	err      error
	triggers map[protocol.TriggerID]*active
	// last is the row of the newest trigger.
	last int64
	// timer fires when the next schedule or retry is due.
	timer *time.Timer
	// retry is when schedules are tried again after a failure. Zero: there was none.
	retry time.Time
	out   outbox
	files fileWatch
	// beside counts the goroutines of deliveries, scans and the watcher.
	beside sync.WaitGroup
	// life is the context of these goroutines. start sets it before any of them runs.
	life context.Context
}

// Delays of the loop.
const (
	// retryDelay is the delay after a failure that may be temporary.
	retryDelay = time.Second
	// maxTimer is the longest time between two readings of the clock. The clock may be set,
	// and timers stop while the machine sleeps.
	maxTimer = 30 * time.Second
)

// newLoop returns a loop that does not run yet.
func newLoop(cfg Config) *loop {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &loop{
		Config: cfg, mail: make(chan func(context.Context)), gone: make(chan struct{}), triggers: map[protocol.TriggerID]*active{}, timer: timer,
		out: outbox{blocked: map[protocol.SessionID]time.Time{}},
	}
}

// start loads the triggers and starts the goroutine. If loading fails, it closes gone, and
// requests get err. stop waits until all goroutines have ended.
func (l *loop) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	l.life = ctx
	if err := l.load(ctx); err != nil {
		if ctx.Err() == nil {
			l.Log.Error("cannot load triggers; none of them runs", "error", err)
			l.err = fmt.Errorf("load triggers: %w", err)
		}
		cancel()
		l.beside.Wait()
		close(l.gone)
		return func() {}
	}
	go l.run()
	return func() { cancel(); <-l.gone }
}

// run is the loop's goroutine. A function that it has taken from mail runs to its end even
// if life ends.
func (l *loop) run() {
	defer close(l.gone)
	defer l.timer.Stop()
	defer l.beside.Wait()
	kept := context.WithoutCancel(l.life) // a function that has started runs to its end
	for {
		l.setTimer()
		l.deliver()
		select {
		case f := <-l.mail:
			f(kept)
		case <-l.timer.C:
			l.guarded(func() { l.tick(kept) })
		case dirs := <-l.files.changes():
			l.scan(dirs)
		case <-l.life.Done():
			return
		}
	}
}

// guarded runs f and logs a panic. Schedules are retried after a panic.
func (l *loop) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			_ = l.Host.Panicked(p) // Panicked logs it
			l.retry = time.Now().Add(retryDelay)
		}
	}()
	f()
}

// post runs f on the loop's goroutine, for results of deliveries and scans. It drops f
// after the end of life.
func (l *loop) post(f func(context.Context)) {
	select {
	case l.mail <- func(ctx context.Context) { l.guarded(func() { f(ctx) }) }:
	case <-l.life.Done():
	}
}

// load reads the triggers and the outstanding deliveries of an earlier daemon. A trigger
// whose source cannot be parsed is disabled with a problem.
func (l *loop) load(ctx context.Context) error {
	stored, err := l.Store.Triggers(ctx)
	if err != nil {
		return err
	}
	for _, row := range stored {
		a := &active{Trigger: row}
		if err := a.parseSource(time.Now()); err != nil {
			l.Log.Error("cannot activate trigger; it is disabled", "trigger", row.ID, "key", row.Key, "error", err)
			a.Enabled, a.Problem = false, err.Error()
		}
		l.activate(a)
	}
	l.out.waiting, err = l.Store.ReservedDeliveries(ctx)
	return err
}

// activate puts a trigger into memory, in place of its earlier revision, and plans its
// schedule and scan.
func (l *loop) activate(a *active) {
	l.triggers[a.ID], l.last = a, max(l.last, a.Row)
	a.plan(time.Now())
	l.rewatch()
	if a.Source.File != nil && l.files.dirs[a.Source.File.Dir] != nil {
		l.scan([]string{a.Source.File.Dir}) // a scan in progress does not include this trigger
	}
}

// remove removes the selected triggers from memory.
func (l *loop) remove(which func(*active) bool) {
	for id, a := range l.triggers {
		if which(a) {
			delete(l.triggers, id)
		}
	}
	l.rewatch()
}

// find returns the trigger with an owner and a key, or nil. Owner "" is the user.
func (l *loop) find(owner protocol.SessionID, key string) *active {
	for _, a := range l.triggers {
		if a.SessionID == owner && a.Key == key {
			return a
		}
	}
	return nil
}

// inOrder returns all triggers in the order of their creation.
func (l *loop) inOrder() []*active {
	all := make([]*active, 0, len(l.triggers))
	for _, a := range l.triggers {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *active) int { return cmp.Compare(a.Row, b.Row) })
	return all
}

// commit makes a change durable. It returns receipt.ErrReplayed if the request was already
// answered.
func (l *loop) commit(ctx context.Context, c *persistence.Commit) error {
	res, err := l.Store.Commit(ctx, c)
	if err == nil && res.Replayed {
		err = receipt.ErrReplayed
	}
	return err
}

// postChanged notifies clients of a trigger that was created or changed.
func (l *loop) postChanged(t protocol.Trigger) {
	l.Host.Post(protocol.ServerEvent{Type: protocol.ServerTriggerChanged, Trigger: &t})
}

// postDeleted notifies clients of a deleted trigger.
func (l *loop) postDeleted(t protocol.Trigger) {
	l.Host.Post(protocol.ServerEvent{Type: protocol.ServerTriggerDeleted, Trigger: &t})
}

func now() int64 { return time.Now().UnixMilli() }

func isMissing(err error) bool { return errors.Is(err, persistence.ErrNotFound) }
