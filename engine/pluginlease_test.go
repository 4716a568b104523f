package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// closer records when the plugins of its sessions are built, work and are closed.
type closer struct {
	mu    sync.Mutex
	noted []string
	work  func(ctx context.Context) // what a query and turnPersisted do
}

type closing struct {
	*closer
	options string
}

func (*closer) ID() string { return "closer" }

func (c *closer) Build(b plugin.BuildContext) (plugin.Plugin, error) {
	one := &closing{c, string(b.Options)}
	if b.SessionID == "" {
		return one, nil
	}
	c.note("built " + one.options)
	return one, nil
}

func (c *closer) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noted = append(c.noted, what)
}

func (c *closer) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.noted)
}

func (c *closing) Register(r *plugin.Registrar) error {
	r.Operations().Query(protocol.OperationInfo{Name: "closer.ask"}, func(ctx context.Context, _ *plugin.OperationCall) (json.RawMessage, error) {
		c.at(ctx)
		return json.RawMessage(`{}`), ctx.Err()
	})
	r.Session().On(func(ctx context.Context, e *plugin.LifecycleEvent) error {
		if e.Kind == plugin.TurnPersisted {
			c.at(ctx)
		}
		return nil
	})
	return nil
}

func (c *closing) at(ctx context.Context) {
	c.note("at work " + c.options)
	c.work(ctx)
	c.note("done " + c.options)
}

func (c *closing) Close() error {
	c.note("closed " + c.options)
	return nil
}

func TestLeases(t *testing.T) {
	options := func(s string) protocol.PluginOptions { return protocol.PluginOptions{"closer": json.RawMessage(s)} }
	// during runs do while a plugin works after a turn, then lets the plugin return.
	during := func(t *testing.T, do func(*testing.T, *daemon, protocol.SessionID)) []string {
		var noted []string
		synctest.Test(t, func(t *testing.T) {
			goOn := make(chan struct{})
			c := &closer{work: func(context.Context) { <-goOn }}
			d := start(t, with(c))
			made := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Options: options("1")}))
			must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: made.SessionID, Name: "early"}))
			c.mu.Lock()
			c.noted = nil
			c.mu.Unlock()
			d.turn(t, made.SessionID, "go")
			synctest.Wait()
			do(t, d, made.SessionID)
			synctest.Wait()
			close(goOn)
			synctest.Wait()
			noted = c.all()
		})
		return noted
	}
	t.Run("plugin/HK-25 plugin/SN-05 plugins that work after a turn are closed when they return, even if the session is restored in between", func(t *testing.T) {
		got := during(t, func(t *testing.T, d *daemon, id protocol.SessionID) {
			must[*protocol.SnapshotRestoreResult](t)(d.Snapshots.Restore(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "early"}))
			must[*protocol.ToolListResult](t)(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}))
		})
		// The first that are built then are only tried.
		if want := []string{"built 1", "at work 1", "built 1", "closed 1", "built 1", "done 1", "closed 1"}; !slices.Equal(got, want) {
			t.Errorf("it went %q, not %q", got, want)
		}
	})
	t.Run("plugin/HK-25 plugin/HK-27 changed options give the next turn new plugins without a wait for the old ones", func(t *testing.T) {
		got := during(t, func(t *testing.T, d *daemon, id protocol.SessionID) {
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Options: options("2")}))
			d.turn(t, id, "more")
		})
		// Here, too, the first that are built then are only tried.
		if want := []string{"built 1", "at work 1", "built 2", "closed 2", "built 2", "at work 2"}; !slices.Equal(got[:6], want) || slices.Index(got, "closed 1") < slices.Index(got, "done 1") {
			t.Errorf("it went %q, not %q", got, want)
		}
	})
	t.Run("plugin/OP-04 plugin/HC-04 deleting a session cancels its queries and waits for them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &closer{work: func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(10 * time.Millisecond)
			}}
			d := start(t, with(c))
			id := d.session(t)
			failed := make(chan error)
			go func() {
				_, err := d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "closer.ask"})
				failed <- err
			}()
			synctest.Wait()
			must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
			synctest.Wait()
			if loaded, _ := d.Stats(); loaded != 1 {
				t.Errorf("the session does not wait")
			}
			if err := <-failed; !errors.Is(err, persistence.ErrDeleted) {
				t.Errorf("the query failed with %v", err)
			}
			synctest.Wait()
			if got := c.all(); !slices.Equal(got[len(got)-3:], []string{"at work ", "done ", "closed "}) {
				t.Errorf("it went %q", got)
			}
		})
	})
	t.Run("plugin/OP-04 a query that does not return does not block the deletion of its session for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			goOn := make(chan struct{})
			c := &closer{work: func(context.Context) { <-goOn }}
			d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: []plugin.Factory{c}})
			id := d.session(t)
			go d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "closer.ask"})
			synctest.Wait()
			must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
			time.Sleep(time.Minute)
			if loaded, _ := d.Stats(); loaded != 0 {
				t.Errorf("%d sessions are in memory", loaded)
			}
			close(goOn)
			synctest.Wait()
			if got := c.all(); !slices.Contains(got, "closed ") {
				t.Errorf("it went %q", got)
			}
		})
	})
}
