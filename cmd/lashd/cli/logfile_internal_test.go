package cli

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogFile(t *testing.T) {
	t.Run("issue/2 the log of a daemon that runs for long begins anew, and its writer goes on", func(t *testing.T) {
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
	t.Run("issue/2 a log that is not there is not made", func(t *testing.T) {
		e := &environment{home: t.TempDir()}
		if err := shorten(e.logFile(), 0); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(e.logFile()); err == nil {
			t.Error("it was made")
		}
	})
}

func holds(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s has %.100q (%d bytes), %v; want %.100q", file, got, len(got), err, want)
	}
}
