package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// slowly is a driver that needs time to open a session.
func slowly(d time.Duration) plugin.Factory {
	wait := func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return scheme{callbacks: func(plugin.BuildContext) plugin.ProtocolSession {
		return plugin.ProtocolSession{
			Initialize: func(ctx context.Context, _ protocol.SessionID) error { return wait(ctx) },
			Restore:    func(ctx context.Context, _ *plugin.View) error { return wait(ctx) },
		}
	}}
}

// heldUp starts a daemon again that needs time to resume a turn whose tool was running.
func heldUp(t *testing.T, takes time.Duration) (*daemon, protocol.SessionID) {
	t.Helper()
	d := start(t, setup{model: replies(calls("hold")), driver: slowly(0), tools: []tool.Provider{holding(nil)}})
	id := d.session(t)
	d.begin(t, id, "go")
	synctest.Wait()
	return d.restart(t, func(s *setup) { s.driver = slowly(takes) }), id
}

// TestResumingIsWatched attaches while a turn is about to resume: the contents of its items are not in memory yet.
func TestResumingIsWatched(t *testing.T) {
	want := []string{"userMessage: go", "toolCall hold"}
	t.Run("reliability/I9 a snapshot waits for the items of the turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, id := heldUp(t, 3*time.Second)
			if got := lines(d.observe(t, id).first.Items); !slices.Equal(got, want) {
				t.Errorf("the snapshot has %q, want %q", got, want)
			}
		})
	})
	t.Run("reliability/I9 a replay has the items of the turn and its state", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, id := heldUp(t, 3*time.Second)
			o := d.observe(t, id, 0)
			var items []protocol.Item
			o.until(func(e protocol.Event) bool {
				if e.Item != nil {
					items = append(items, *e.Item)
				}
				return e.Type == protocol.EventItemStarted
			})
			if got := lines(items); !slices.Equal(got, want) || o.first.TurnID == "" {
				t.Errorf("the replay of the turn %q has %q, want %q", o.first.TurnID, got, want)
			}
		})
	})
	t.Run("reliability/I9 the session is not idle while the turn has yet to resume", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, id := heldUp(t, 3*time.Second)
			all := must[*protocol.SessionListResult](t)(d.Sessions.List(t.Context(), &protocol.SessionListParams{})).Data
			read := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session
			if len(all) != 1 || all[0].State != protocol.SessionRunning || read.State != protocol.SessionRunning {
				t.Errorf("the session is %s, and in the list of %d sessions %s", read.State, len(all), all[0].State)
			}
		})
	})
	t.Run("plugin/PR-02 a reader waits no longer than the limit for plugins", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, id := heldUp(t, time.Hour)
			began := time.Now()
			d.observe(t, id, 0).typed(protocol.EventTurnCompleted)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("to hear that the turn cannot go on took %v", took)
			}
		})
	})
	t.Run("runtime/S16 a reader does not wait for a daemon that stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, id := heldUp(t, 9*time.Second)
			attached := later(func() (struct{}, error) {
				_, sub, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
				if err == nil {
					sub.Close()
				}
				return struct{}{}, err
			})
			synctest.Wait()
			d.stop()
			if err := <-attached; err != engine.ErrShuttingDown {
				t.Errorf("attach returned %v", err)
			}
		})
	})
}
