//go:build unix

package pluginloader_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// BenchmarkReload is the time from the last byte of an edit until a session can have what it says, with the handshake of the
// new process. 60 ms of it are the time that a change has to be over.
func BenchmarkReload(b *testing.B) {
	w := newWorld(b)
	dir := filepath.Join(w.user, "g")
	if err := fill(dir, edition(0)); err != nil {
		b.Fatal(err)
	}
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	var times []time.Duration
	n := 0
	for b.Loop() {
		n++
		was := w.info("", "guest").Generation
		for _, name := range []string{"version", "plugin.json"} {
			if err := styles["by rename"](dir, name, edition(n)[name]); err != nil {
				b.Fatal(err)
			}
		}
		began := time.Now()
		w.until("it is loaded", func() bool { return w.info("", "guest").Generation > was })
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms/median")
	b.ReportMetric(float64(times[len(times)*9/10].Microseconds())/1000, "ms/p90")
}

// BenchmarkStart measures the time until sessions can open, with many plugins whose processes are unused.
func BenchmarkStart(b *testing.B) {
	for _, plugins := range []int{0, 50} {
		b.Run(fmt.Sprint(plugins), func(b *testing.B) {
			w := newWorld(b)
			for i := range plugins {
				name := fmt.Sprintf("p%02d", i)
				save(b, filepath.Join(w.user, name, "plugin.json"), manifest(name, `,"tools":[{"name":"`+name+`","description":"d"}]`))
			}
			w.start()
			for i := range plugins {
				w.status("", fmt.Sprintf("p%02d", i), protocol.PluginLoaded)
			}
			var took time.Duration
			n := 0
			for b.Loop() {
				w.stop()
				began := time.Now()
				w.start()
				must(w.Loader.Host(b.Context(), "/")).of(b)
				took += time.Since(began)
				n++
			}
			b.ReportMetric(float64(took.Microseconds())/1000/float64(n), "ms/start")
		})
	}
}
