package undo

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// open returns Files with a store that runs until the test ends.
func open(t *testing.T) *Files {
	t.Helper()
	dir := t.TempDir()
	store, err := persistence.Open(t.Context(), persistence.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	f := New(Config{Store: store, StateDir: dir, Idle: time.Minute, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		stop()
		if err := errors.Join(<-ended, store.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestUnreadableAnnouncedPath(t *testing.T) {
	t.Run("issue/6-2 an announced path that cannot be read makes the point unrestorable and logs an error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, dir := open(t), t.TempDir()
			for name, text := range map[string]string{".gitignore": "*.env\n", "a.env": "old\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := f.NewPoint("ses_a", 1, "trn_a", dir)
			defer p.Release()
			p.LookBefore(t.Context())
			p.ToolsStart()
			if err := p.workspace.lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Announce(t.Context(), "a.env")
			p.workspace.unlock()
			p.ToolsEnd(t.Context())
			p.Join(true)
			c := change.New(change.Base{}, persistence.Commit{})
			p.Close(c)
			events := c.Told()
			if len(events) != 1 || events[0].Point.State != protocol.PointClosed || !strings.Contains(events[0].Point.Unrestorable, "a.env") {
				t.Errorf("events %+v", events)
			}
		})
	})
}
