package cli

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"lashd/cmd/internal/daemon"
)

func TestOpeningOfADaemon(t *testing.T) {
	t.Run("issue/2 postponed work starts even without a request", func(t *testing.T) {
		percent := debug.SetGCPercent(100)
		defer debug.SetGCPercent(percent)
		synctest.Test(t, func(t *testing.T) {
			o := beginOpening()
			begun := time.Now()
			o.served()
			<-o.over
			if waited := time.Since(begun); waited != openingMoment {
				t.Errorf("waited %v", waited)
			}
			o.end() // the first answer comes later
		})
		if after := debug.SetGCPercent(100); after != 100 {
			t.Errorf("GOGC is %d after the start", after)
		}
	})
	t.Run("issue/2 stopping a daemon before its database is open is not a failure", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		home := filepath.Join(t.TempDir(), "home")
		e := &daemon.Environment{Home: home, Socket: filepath.Join(home, "socket"), Log: slog.New(slog.DiscardHandler)}
		if err := (&server{Environment: e}).daemon(ctx, nil); err != nil {
			t.Errorf("the daemon returned %v", err)
		}
	})
}
