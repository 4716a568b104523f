package plugin

import (
	"slices"

	"lashd/rpc/protocol"
)

// roster are the plugins that were built for a session, and calls of them.
type roster struct {
	session   protocol.SessionID
	plugins   []instance
	loaded    map[string]bool // plugins that do not ship with lashd: whether they are in a sandbox
	abandoned abandonedCalls
	probe     func(string)
}

// Sandboxed tells whether all programs of a plugin of the session are in a sandbox.
func (r *roster) Sandboxed(id string) bool { return r.loaded[id] }

// Loaded tells whether a plugin of the session does not ship with lashd.
func (r *roster) Loaded(id string) bool {
	_, loaded := r.loaded[id]
	return loaded
}

// Ships tells whether a plugin of the session ships with lashd, so that what it says of its tools is so.
func (r *roster) Ships(id string) bool {
	_, loaded := r.loaded[id]
	return !loaded && r.Has(id)
}

// Has tells whether the session has a plugin.
func (r *roster) Has(id string) bool {
	return slices.ContainsFunc(r.plugins, func(p instance) bool { return p.id == id })
}

// mark tells the probe that a hook begins, and gives the function that tells that it has ended.
func (r *roster) mark(hook Hook, plugin string) (end func()) {
	if r.probe == nil || hook == HookCheckpoint {
		return func() {}
	}
	name := "plugin_hook." + string(hook) + "." + plugin
	r.probe(name + " begin")
	return func() { r.probe(name + " end") }
}

// SetProbe has the begin and the end of the hooks before and after turns, of context transforms and of lifecycle events
// told, as "plugin_hook.KIND.PLUGIN begin". It is set before the session is used, and called from several goroutines.
func (r *roster) SetProbe(probe func(mark string)) { r.probe = probe }
