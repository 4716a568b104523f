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

// loop owns the triggers in memory. All of it belongs to one goroutine, that of run; everybody else sends it short functions. It
// commits, then changes memory. It waits for the store and for nothing else: deliveries and file scans run beside it.
type loop struct {
	Config
	mail     chan func(context.Context)
	gone     chan struct{} // closed once nothing is taken any more
	err      error         // why the triggers could not be loaded; read after gone is closed
	triggers map[protocol.TriggerID]*active
	last     int64 // row of the newest
	timer    *time.Timer
	retry    time.Time // when schedules are tried again after a failure; zero: there was none
	out      outbox
	files    fileWatch
	beside   sync.WaitGroup
	life     context.Context // of what runs beside it; set before anything does
}

const (
	retryDelay = time.Second      // after a failure that may pass
	maxTimer   = 30 * time.Second // until the clock is read again: it may be set, and timers stand still while the machine sleeps
)

func newLoop(cfg Config) *loop {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &loop{
		Config: cfg, mail: make(chan func(context.Context)), gone: make(chan struct{}), triggers: map[protocol.TriggerID]*active{}, timer: timer,
		out: outbox{blocked: map[protocol.SessionID]time.Time{}},
	}
}

func (l *loop) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	l.life = ctx
	if err := l.load(ctx); err != nil {
		if ctx.Err() == nil {
			l.Log.Error("triggers cannot be loaded", "error", err)
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

func (l *loop) run() {
	defer close(l.gone)
	defer l.timer.Stop()
	defer l.beside.Wait()
	kept := context.WithoutCancel(l.life) // what has begun is finished
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

func (l *loop) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			_ = l.Host.Panicked(p) // it is logged
			l.retry = time.Now().Add(retryDelay)
		}
	}()
	f()
}

// post has the loop do something about work beside it.
func (l *loop) post(f func(context.Context)) {
	select {
	case l.mail <- func(ctx context.Context) { l.guarded(func() { f(ctx) }) }:
	case <-l.life.Done():
	}
}

// load reads the triggers, and the deliveries that an earlier daemon has not made.
func (l *loop) load(ctx context.Context) error {
	stored, err := l.Store.Triggers(ctx)
	if err != nil {
		return err
	}
	for _, row := range stored {
		a := &active{Trigger: row}
		if err := a.parseSource(time.Now()); err != nil {
			l.Log.Error("trigger is not at work", "trigger", row.ID, "key", row.Key, "error", err)
			a.Enabled, a.Problem = false, err.Error()
		}
		l.activate(a)
	}
	l.out.waiting, err = l.Store.ReservedDeliveries(ctx)
	return err
}

// activate puts a trigger to work, in place of its earlier revision.
func (l *loop) activate(a *active) {
	l.triggers[a.ID], l.last = a, max(l.last, a.Row)
	a.plan(time.Now())
	l.rewatch()
	if a.Source.File != nil && l.files.dirs[a.Source.File.Dir] != nil {
		l.scan([]string{a.Source.File.Dir}) // a scan that is in progress does not look for this one
	}
}

// remove forgets triggers.
func (l *loop) remove(which func(*active) bool) {
	for id, a := range l.triggers {
		if which(a) {
			delete(l.triggers, id)
		}
	}
	l.rewatch()
}

// find returns the trigger of an owner with a key, or nil.
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

// commit makes a change durable.
func (l *loop) commit(ctx context.Context, c *persistence.Commit) error {
	res, err := l.Store.Commit(ctx, c)
	if err == nil && res.Replayed {
		err = receipt.ErrReplayed
	}
	return err
}

// postChanged publishes a trigger that was created or changed.
func (l *loop) postChanged(t protocol.Trigger) {
	l.Host.Post(protocol.ServerEvent{Type: protocol.ServerTriggerChanged, Trigger: &t})
}

// postDeleted publishes that a trigger was deleted.
func (l *loop) postDeleted(t protocol.Trigger) {
	l.Host.Post(protocol.ServerEvent{Type: protocol.ServerTriggerDeleted, Trigger: &t})
}

func now() int64 { return time.Now().UnixMilli() }

func isMissing(err error) bool { return errors.Is(err, persistence.ErrNotFound) }
