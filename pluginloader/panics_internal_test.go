package pluginloader

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

func TestAPanicOfALookFailsThePlugin(t *testing.T) {
	t.Run("outside/28 a scan that panics does not affect others", func(t *testing.T) {
		s := &set{scope: protocol.ScopeUser} // without a loader, every look at a directory panics
		broken, gone := &entry{set: s, dir: t.TempDir(), log: child.NewLog(slog.Default())}, &entry{set: s}
		findings, _ := findAll(t.Context(), []look{{entry: broken, there: true, asked: 3}, {entry: gone}}, time.Hour)
		f := findings[0]
		if f == nil || f.status != protocol.PluginFailed || f.asked != 3 || f.unit != nil || len(f.problems) != 1 || findings[1] != nil {
			t.Fatalf("found %+v", findings)
		}
		if text := f.problems[0].Message; !strings.Contains(text, "internal error in the plugin loader") {
			t.Errorf("it says %q", text)
		}
	})
	t.Run("outside/28 panics of the loader's goroutines are logged", func(t *testing.T) {
		var log strings.Builder
		l := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		l.inBackground("this", func() { panic("that") })
		l.building.Wait()
		if text := log.String(); !strings.Contains(text, "at=this panic=that") || !strings.Contains(text, "panics_internal_test.go") {
			t.Errorf("the log has %q", text)
		}
	})
}
