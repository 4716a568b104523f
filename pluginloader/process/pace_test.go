//go:build unix

package process_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
)

func TestPace(t *testing.T) {
	t.Run("reliability/P14 a plugin that floods lashd with requests is slowed down, and most rejections are not logged", func(t *testing.T) {
		var log bytes.Buffer
		c := config(t, "hook/beforeTurn:asksOn", only(process.Hook{Name: process.BeforeTurn}))
		c.Log, c.Output = slog.New(slog.NewTextHandler(&log, nil)), child.NewLog(slog.New(slog.DiscardHandler))
		c.Deadlines.Hook, c.Deadlines.Stall = 2*time.Second, time.Minute
		f, began := begin(t, c), time.Now()
		if err := turnHook(t.Context(), session(t, "ses_1", f)); err == nil || !strings.Contains(err.Error(), string(process.TimedOut)) {
			t.Errorf("the hook returned %v", err)
		}
		if err := f.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		// A hundred in each second that begins during the call and its grace period.
		took := time.Since(began)
		if n := strings.Count(log.String(), "rejected a request of the plugin"); n == 0 || n > 100*(int(took.Seconds())+2) {
			t.Errorf("%d refusals are logged in %v", n, took)
		}
	})
}
