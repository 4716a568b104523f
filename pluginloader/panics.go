package pluginloader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// errPanic means that lashd's own code panicked.
var errPanic = errors.New("internal error in the plugin loader; lashd.log has the stack")

// contain calls f and converts a panic to an error. It logs the stack. A defect that one plugin
// triggers must not end the daemon, which serves all sessions.
func contain[T any](log *slog.Logger, what string, f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in the plugin loader", "at", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%s: %w: %v", what, errPanic, p)
		}
	}()
	return f()
}

// contained is contain for functions without a result.
func (l *Loader) contained(what string, f func()) error {
	_, err := contain(l.config.Log, what, func() (struct{}, error) {
		f()
		return struct{}{}, nil
	})
	return err
}

// inBackground runs f on its own goroutine and logs a panic. Run waits for these goroutines.
func (l *Loader) inBackground(what string, f func()) {
	l.building.Go(func() { _ = l.contained(what, f) }) // contained logs the error
}

// watchRestart is the pause after a panic of the watcher.
const watchRestart = time.Second

// watch runs the watcher until ctx is done and restarts it after a panic. Without a watcher, edits
// would go unnoticed until lashd restarts.
func (l *Loader) watch(ctx context.Context) error {
	for {
		_, err := contain(l.config.Log, "watch plugins", func() (struct{}, error) { return struct{}{}, l.watcher.Run(ctx) })
		if !errors.Is(err, errPanic) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchRestart):
		}
	}
}

// contained is examine with a panic as a failed finding. The unit in use stays.
func (g look) contained(ctx context.Context) *finding {
	f, err := contain(g.log(), "look at "+g.dir, func() (*finding, error) { return g.examine(ctx), nil })
	if err != nil {
		f = g.wrong("", err)
		f.asked = g.asked
	}
	return f
}

// log returns the loader's log, also in tests without a loader.
func (g look) log() *slog.Logger {
	if g.set.loader == nil {
		return slog.Default()
	}
	return g.set.loader.config.Log
}

// fail records that the findings could not be applied, because applying them panicked. The host
// stays as it is, and the directories are scanned again.
func (s *set) fail(entries []*entry, findings []*finding, err error) {
	for i, f := range findings {
		if f != nil {
			entries[i].blame(err)
			entries[i].assess(nil)
			entries[i].sign = ""
		}
	}
	s.show()
}
