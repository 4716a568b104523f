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

// unit is a loaded version of a plugin: one copy with its programs. All sets with the same version
// share it, for example the user's plugins, which are part of every workspace's host. It is
// counted: hold adds a user and release removes one. mu protects users.
type unit struct {
	dir      string // the directory that was copied
	copy     content.Copy
	manifest *manifest.Plugin
	factory  plugin.Factory
	output   *child.Log
	process  *process.Factory    // nil: the plugin has no process
	servers  *mcp.Part           // nil: the plugin has no MCP servers
	ends     []plugin.Shutdowner // parts to shut down
	own      bool                // a plugin of the user, not of a workspace
	number   int64               // the first generation with the unit

	mu    sync.Mutex
	users int
}

// name returns the plugin's name.
func (u *unit) name() string { return u.manifest.Name }

// hold adds a user.
func (u *unit) hold() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users++
}

// release removes a user. After the last one it ends the programs, within stopPatience, and closes
// the copy; then last is true. The error is the first of those that ending the parts returned.
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

// let releases units in the background, because ending programs takes time. After the last user of
// a version, it removes copies that are no longer needed.
func (l *Loader) let(units ...*unit) {
	for _, u := range units {
		l.inBackground("end a plugin", func() {
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
