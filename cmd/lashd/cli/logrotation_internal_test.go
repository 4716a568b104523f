package cli

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/cmd/internal/daemon"
)

func TestLogRotation(t *testing.T) {
	t.Run("issue/2 a long log is rotated while its writer continues", func(t *testing.T) {
		e := &daemon.Environment{Home: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
		stderr, err := os.OpenFile(e.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer stderr.Close()
		long := strings.Repeat("a line\n", logLimit/7+1)
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stderr.WriteString("short\n")
			go keepLog(ctx, e)
			synctest.Wait()
			holds(t, e.LogFile(), "short\n")
			stderr.WriteString(long)
			time.Sleep(logCheck)
			synctest.Wait()
			stderr.WriteString("more\n")
			holds(t, e.LogFile(), "more\n")
			holds(t, e.LogFile()+".old", "short\n"+long)
		})
	})
	t.Run("issue/2 a missing log is not created", func(t *testing.T) {
		e := &daemon.Environment{Home: t.TempDir()}
		if err := shorten(e.LogFile(), 0); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(e.LogFile()); err == nil {
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
