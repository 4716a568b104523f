//go:build unix

package pluginloader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// counts are what a daemon has of things that leak.
func (w *world) counts() (goroutines, files, copies int) {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		fds = nil // there is no such thing here
	}
	kept, err := os.ReadDir(filepath.Join(w.home, "plugins", "copies"))
	if err != nil {
		w.t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(fds), len(kept)
}

func TestNothingIsLeftOfGenerations(t *testing.T) {
	t.Run("reliability/T9 issue/4-5 many generations leave no more behind than one", func(t *testing.T) {
		swaps := 25
		if os.Getenv("LASHD_LONG") != "" {
			swaps = 500
		}
		w := newWorld(t)
		w.write("g/version", "0")
		w.write("g/plugin.json", guestOf("guest", "d"))
		w.start()
		w.status("", "guest", protocol.PluginLoaded)
		id := w.session("")
		swap := func(n int) {
			w.write("g/version", fmt.Sprint(n))
			w.until("it is another one", func() bool {
				must(w.Reload(t.Context(), &protocol.PluginReloadParams{})).of(t)
				return w.call(id, "version", `{}`) == fmt.Sprint(n)
			})
		}
		for n := range 5 {
			swap(n + 1)
		}
		calm := func() (g, f, c int) { // what is let go is gone soon
			for range 50 {
				time.Sleep(20 * time.Millisecond)
			}
			return w.counts()
		}
		goroutines, files, copies := calm()
		for n := range swaps {
			swap(n + 100)
		}
		g, f, c := calm()
		for tries := 0; tries < 10 && (g > goroutines+2 || f > files+2 || c > copies); tries++ { // what a slow machine does later
			g, f, c = calm()
		}
		if g > goroutines+2 || f > files+2 || c > copies {
			t.Errorf("%d goroutines, %d files, %d copies; before there were %d, %d and %d", g, f, c, goroutines, files, copies)
		} else {
			t.Logf("%d swaps: %d goroutines, %d files, %d copies; before there were %d, %d and %d", swaps, g, f, c, goroutines, files, copies)
		}
	})
	t.Run("reliability/T9 issue/4-5 a copy is removed with the last session that uses it", func(t *testing.T) {
		w := newWorld(t)
		w.write("g/version", "1")
		w.write("g/plugin.json", guestOf("guest", "d"))
		w.start()
		w.status("", "guest", protocol.PluginLoaded)
		id := w.session("")
		w.call(id, "version", `{}`)
		w.write("g/version", "2")
		w.until("it is seen", func() bool {
			must(w.Reload(t.Context(), &protocol.PluginReloadParams{})).of(t)
			return w.call(w.session(""), "version", `{}`) == "2"
		})
		time.Sleep(time.Second) // no look follows any more
		if _, _, copies := w.counts(); copies != 2 {
			t.Errorf("there are %d copies while a session runs from the first", copies)
		}
		if got := w.call(id, "version", `{}`); got != "2" {
			t.Errorf("the session runs from %s", got)
		}
		w.until("the first copy is gone", func() bool { _, _, copies := w.counts(); return copies == 1 })
	})
}
