package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// writing keeps the store busy with a write until done is called.
func (d *daemon) writing(t testing.TB) (done func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	c := &persistence.Commit{Session: d.session(t), Receipt: &persistence.Receipt{Key: string(protocol.NewInputID()), ResultAt: func(protocol.Head) []byte {
		close(begun)
		<-end
		return []byte(`{}`)
	}}}
	written := make(chan error, 1)
	go func() {
		_, err := d.store.Commit(context.Background(), c)
		written <- err
	}()
	<-begun
	return func() {
		close(end)
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}

// stores blocks until a session waits for the store.
func (d *daemon) stores(t testing.TB, id protocol.SessionID) {
	t.Helper()
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := d.Sessions.Wait(ctx, &protocol.SessionWaitParams{SessionID: id, TimeoutMs: 1})
		return errors.Is(err, context.DeadlineExceeded)
	})
}

// leaving is a context that ends when it is waited on for the third time: for a function of a session, that is once it was sent.
type leaving struct {
	context.Context
	waits atomic.Int32
}

func (l *leaving) Done() <-chan struct{} {
	if l.waits.Add(1) < 3 {
		return nil
	}
	done := make(chan struct{})
	close(done)
	return done
}

func (l *leaving) Err() error {
	if l.waits.Load() < 3 {
		return nil
	}
	return context.Canceled
}

// TestCancelDuringCommit checks that a change that has begun is completed even if its request is cancelled then.
func TestCancelDuringCommit(t *testing.T) {
	t.Run("runtime/K02 the tasks and subagents of a deleted session end", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		alive := filepath.Join(t.TempDir(), "alive")
		d.task(t, id, "tsk_a", command("while :; do date >"+alive+"; sleep 0.01; done", protocol.RecoverOwner))
		eventually(t, func() bool { _, err := os.Stat(alive); return err == nil })
		done := d.writing(t)
		ctx, cancel := context.WithCancel(t.Context())
		deleted := make(chan error, 1)
		go func() {
			_, err := d.Sessions.Delete(ctx, &protocol.SessionMutationParams{SessionID: id})
			deleted <- err
		}()
		d.stores(t, id)
		cancel()
		time.Sleep(50 * time.Millisecond) // for whoever takes that for the end of it
		done()
		<-deleted
		eventually(t, func() bool { return errors.Is(errOf(d.store.Session(t.Context(), id)), persistence.ErrDeleted) })
		for range 100 {
			os.Remove(alive)
			time.Sleep(200 * time.Millisecond)
			if _, err := os.Stat(alive); err != nil {
				return
			}
		}
		t.Error("a command of it runs still, after 20 seconds")
	})
	t.Run("plugin/HC-14 transferred tasks reach the other session or return", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		a, b := d.session(t), d.session(t)
		d.task(t, a, "tsk_a", command("sleep 600", protocol.RecoverOwner))
		for i := range 10 {
			from, to := a, b
			if i%2 == 1 {
				from, to = b, a
			}
			_, err := d.Tasks.Transfer(&leaving{Context: t.Context()}, &protocol.TaskTransferParams{SessionID: from, TaskIDs: []protocol.TaskID{"tsk_a"}, To: to})
			if err != nil {
				t.Errorf("the transfer fails with %v", err)
			}
			here := protocol.TaskParams{SessionID: from, TaskID: "tsk_a"}
			if _, err := d.Tasks.Cancel(t.Context(), "", &protocol.TaskCancelParams{TaskParams: here}); errors.Is(err, engine.ErrTaskLeaving) {
				t.Fatal("the task is on its way for ever")
			}
		}
	})
	t.Run("runtime/T10 a session does not wait for a caller that has given up", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "done"}), config: func(c *engine.Config) { c.Idle = 50 * time.Millisecond }})
		defer d.Clients.Connected("cli_editor")()
		id := d.session(t)
		tools := []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "open_file"}}}
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_editor", &protocol.SessionOverlayParams{SessionID: id, Tools: tools}))
		done := d.writing(t)
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error, 1)
		go func() {
			_, err := d.Tools.Call(ctx, &protocol.ToolCallParams{SessionID: id, Name: "open_file"})
			called <- err
		}()
		d.stores(t, id)
		cancel()
		time.Sleep(50 * time.Millisecond)
		done()
		<-called
		eventually(t, func() bool { loaded, _ := d.Stats(); return loaded == 0 })
	})
}
