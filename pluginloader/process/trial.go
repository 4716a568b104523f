package process

import (
	"context"

	"lashd/pluginloader/child"
)

// Try starts the process and waits for its handshake. The next session uses the same process, so an
// edit of the plugin costs one start. If no session uses it within Deadlines.Unused, the process is
// stopped until it is needed.
func (f *Factory) Try(ctx context.Context) error {
	l, err := f.super.Use(ctx)
	if err != nil {
		return err
	}
	f.running.Go(func() { f.stopUnused(l) })
	return nil
}

// use returns the process for a session and starts it if needed. From then on the process counts as
// used.
func (f *Factory) use(ctx context.Context) (*life, error) {
	f.mu.Lock()
	f.used = true
	f.mu.Unlock()
	return f.super.Use(ctx)
}

// stopUnused stops the process if no session has used it in time.
func (f *Factory) stopUnused(l *life) {
	if child.DoneWithin(l.over, f.config.Deadlines.Unused) || !f.endUnused(l) {
		return
	}
	l.stop(context.Background(), f.config.Deadlines.Stop)
}

// endUnused ends the process unless a session has used it. Holding mu decides the race with use: a
// session that arrives later waits for the end and starts another process.
func (f *Factory) endUnused(l *life) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.used {
		l.tell("shutdown", struct{}{}) // before end, which stops sending
		l.end(Stopped, child.ErrShutDown)
	}
	return !f.used
}
