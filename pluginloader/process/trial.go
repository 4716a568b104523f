package process

import (
	"context"

	"lashd/pluginloader/child"
)

// Try starts the process and waits until it has shown that it is the plugin that was declared. The sessions that come next use
// that process, so an edit costs one start, not two. If none comes
// within Deadlines.Unused, the process is stopped until it is needed.
func (f *Factory) Try(ctx context.Context) error {
	l, err := f.super.Use(ctx)
	if err != nil {
		return err
	}
	f.running.Go(func() { f.stopUnused(l) })
	return nil
}

// use gives the process to a session. It is started if it does not run.
func (f *Factory) use(ctx context.Context) (*life, error) {
	f.mu.Lock()
	f.used = true
	f.mu.Unlock()
	return f.super.Use(ctx)
}

// stopUnused stops a process unless a session uses it in time.
func (f *Factory) stopUnused(l *life) {
	if child.DoneWithin(l.over, f.config.Deadlines.Unused) || !f.endUnused(l) {
		return
	}
	l.stop(context.Background(), f.config.Deadlines.Stop)
}

// endUnused lets no session use the process any more, unless one has. A session that comes now waits until the process has stopped,
// and starts another one.
func (f *Factory) endUnused(l *life) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.used {
		l.tell("shutdown", struct{}{}) // after end nothing is sent
		l.end(Stopped, child.ErrShutDown)
	}
	return !f.used
}
