package pluginloader

import (
	"context"
	"sync"

	"lashd/engine/plugin"
	"lashd/pluginloader/child"
	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/process"
)

// unit is a plugin as it runs: one content of a directory, from a copy that does not change. All sets that have it share it.
type unit struct {
	dir      string // whose content it is
	copy     content.Copy
	manifest *manifest.Plugin
	factory  plugin.Factory
	output   *child.Log
	process  *process.Factory // nil: it has none
	servers  *mcp.Part        // likewise
	ends     []plugin.Shutdowner
	own      bool  // the user's, not a workspace's
	number   int64 // of the first generation that it was in

	mu    sync.Mutex
	users int
}

func (u *unit) name() string { return u.manifest.Name }

// hold has the unit stay.
func (u *unit) hold() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users++
}

// release lets it go. Once nobody holds it any more, its programs are ended, and it was the last one.
func (u *unit) release(ctx context.Context) (last bool, err error) {
	u.mu.Lock()
	u.users--
	last = u.users == 0
	u.mu.Unlock()
	if !last {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	defer u.copy.Close()
	for _, e := range u.ends {
		if failed := e.Shutdown(ctx); err == nil {
			err = failed
		}
	}
	return true, err
}

// let releases units without anybody waiting for it.
func (l *Loader) let(units ...*unit) {
	for _, u := range units {
		l.beside("end a plugin", func() {
			last, err := u.release(context.Background())
			if err != nil {
				l.config.Log.Warn("a plugin did not end", "plugin", u.name(), "error", err)
			}
			if last {
				l.tidy()
			}
		})
	}
}
