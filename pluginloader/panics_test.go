//go:build unix

package pluginloader_test

import (
	"sync/atomic"
	"testing"

	"lashd/rpc/protocol"
)

func TestAPanicOfTheLoaderLeavesTheDaemon(t *testing.T) {
	t.Run("outside/28 loaded plugins keep running, and later changes take effect", func(t *testing.T) {
		w := newWorld(t)
		var panics atomic.Bool
		w.news = func(protocol.ServerEvent) { // it is called while a generation is put in the place of another one
			if panics.Load() {
				panic("a receiver fails")
			}
		}
		w.write("g/version", "one")
		w.write("g/plugin.json", guestOf("guest", "d"))
		w.start()
		w.status("", "guest", protocol.PluginLoaded)
		id := w.session("")
		if got := w.call(id, "version", `{}`); got != "one" {
			t.Fatalf("it says %q", got)
		}
		panics.Store(true)
		w.write("other/plugin.json", `{"name":"other","lashd":{"prompt":[{"slot":"guidance","content":"x"}]}}`)
		w.until("the other plugin has a status", func() bool { return w.info("", "other").Status != "" })
		w.Reload(t.Context(), &protocol.PluginReloadParams{}) // it may report the panic
		if got := w.call(w.session(""), "version", `{}`); got != "one" {
			t.Errorf("after a panic it says %q", got)
		}
		panics.Store(false)
		w.write("g/version", "two")
		w.until("the change takes effect", func() bool { return w.call(w.session(""), "version", `{}`) == "two" })
		must(w.Reload(t.Context(), &protocol.PluginReloadParams{})).of(t)
		w.status("", "other", protocol.PluginLoaded)
	})
}
