package plugin

import (
	"slices"

	"lashd/rpc/protocol"
)

// roster lists the plugin instances of one session and tracks their abandoned calls. All parts of the contributions
// share it.
type roster struct {
	session   protocol.SessionID
	plugins   []instance
	loaded    map[string]bool // plugins that do not ship with lashd: whether they are sandboxed
	outsiders []Outsider
	abandoned abandonedCalls
	probe     func(string) // nil: not measured
}

// Sandboxed reports whether all programs of a plugin run in a sandbox.
func (r *roster) Sandboxed(id string) bool { return r.loaded[id] }

// Loaded reports whether a plugin of the session does not ship with lashd.
func (r *roster) Loaded(id string) bool {
	_, loaded := r.loaded[id]
	return loaded
}

// Ships reports whether a plugin of the session ships with lashd. Only then can its claims about its own tools be
// trusted.
func (r *roster) Ships(id string) bool {
	_, loaded := r.loaded[id]
	return !loaded && r.Has(id)
}

// Has reports whether the session has a plugin.
func (r *roster) Has(id string) bool {
	return slices.ContainsFunc(r.plugins, func(p instance) bool { return p.id == id })
}

// mark reports the start of a hook to the probe and returns the function that reports its end.
func (r *roster) mark(hook Hook, plugin string) (end func()) {
	if r.probe == nil || hook == HookCheckpoint {
		return func() {}
	}
	name := "plugin_hook." + string(hook) + "." + plugin
	r.probe(name + " begin")
	return func() { r.probe(name + " end") }
}

// SetProbe makes hooks before and after turns, context transforms and lifecycle events call probe when they start and
// end, with a mark such as "plugin_hook.KIND.PLUGIN begin". Call it before the session is used. probe is called from
// several goroutines.
func (r *roster) SetProbe(probe func(mark string)) { r.probe = probe }
