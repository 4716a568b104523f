package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogFile(t *testing.T) {
	t.Run("issue/2 the last line of the log says why a daemon did not start, however long the log is", func(t *testing.T) {
		e := &environment{home: t.TempDir()}
		for log, want := range map[string]string{
			"": ": ", "lashd: one\n": ": one", "one\n\nlashd: two\n\n": ": two", strings.Repeat("x", logLimit) + "\nlashd: last\n": ": last",
			strings.Repeat("x", logLimit): strings.Repeat("x", lineLimit),
		} {
			if err := os.WriteFile(e.logFile(), []byte(log), 0o600); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := e.notStarted(errors.New("exit"))
			runtime.ReadMemStats(&after)
			if text := strings.TrimSuffix(err.Error(), " (log: "+e.logFile()+")"); !strings.HasSuffix(text, want) || after.TotalAlloc-before.TotalAlloc > 1<<20 {
				t.Errorf("for a log of %d bytes the message has %d, %.80q, and %d bytes were allocated", len(log), len(text), text, after.TotalAlloc-before.TotalAlloc)
			}
		}
	})
	t.Run("issue/2 a long log is rotated while its writer continues", func(t *testing.T) {
		e := &environment{home: t.TempDir(), log: slog.New(slog.DiscardHandler)}
		stderr, err := os.OpenFile(e.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer stderr.Close()
		long := strings.Repeat("a line\n", logLimit/7+1)
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stderr.WriteString("short\n")
			go e.keepLog(ctx)
			synctest.Wait()
			holds(t, e.logFile(), "short\n")
			stderr.WriteString(long)
			time.Sleep(logCheck)
			synctest.Wait()
			stderr.WriteString("more\n")
			holds(t, e.logFile(), "more\n")
			holds(t, e.logFile()+".old", "short\n"+long)
		})
	})
	t.Run("issue/2 a missing log is not created", func(t *testing.T) {
		e := &environment{home: t.TempDir()}
		if err := shorten(e.logFile(), 0); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(e.logFile()); err == nil {
			t.Error("the log was created")
		}
	})
}

func holds(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s has %.100q (%d bytes), %v; want %.100q", file, got, len(got), err, want)
	}
}
