package daemon

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestLogFile(t *testing.T) {
	t.Run("issue/2 the last line of the log says why a daemon did not start, however long the log is", func(t *testing.T) {
		e := &Environment{Home: t.TempDir()}
		for log, want := range map[string]string{
			"": ": ", "lashd: one\n": ": one", "one\n\nlashd: two\n\n": ": two", strings.Repeat("x", 8<<20) + "\nlashd: last\n": ": last",
			strings.Repeat("x", 8<<20): strings.Repeat("x", lineLimit),
		} {
			if err := os.WriteFile(e.LogFile(), []byte(log), 0o600); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := e.notStarted(errors.New("exit"))
			runtime.ReadMemStats(&after)
			if text := strings.TrimSuffix(err.Error(), " (log: "+e.LogFile()+")"); !strings.HasSuffix(text, want) || after.TotalAlloc-before.TotalAlloc > 1<<20 {
				t.Errorf("for a log of %d bytes the message has %d, %.80q, and %d bytes were allocated", len(log), len(text), text, after.TotalAlloc-before.TotalAlloc)
			}
		}
	})
}
