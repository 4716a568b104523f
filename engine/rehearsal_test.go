package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// rehearsed returns a closed session with a snapshot "s" after its first turn and with one more turn after that.
func (o *opened) rehearsed(t *testing.T) (*daemon, protocol.SessionID) {
	t.Helper()
	s := with(o.remember(), hooked{"listener", o.listen})
	s.driver = scheme{callbacks: func(ctx plugin.BuildContext) plugin.ProtocolSession {
		c := o.callbacks(ctx)
		restore := c.Restore
		c.Restore = func(ctx context.Context, v *plugin.View) error {
			return errors.Join(restore(ctx, v), o.at("in "+string(v.Session.ID)+" after "+view(v)))
		}
		return c
	}}
	d := start(t, s)
	id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{SessionID: "ses_x", Cwd: t.TempDir()})).SessionID
	d.holds(t, id, "kept", "")
	d.turn(t, id, "one")
	must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}))
	if err := d.appendText(t, id, "later"); err != nil {
		t.Fatal(err)
	}
	o.mu.Lock()
	o.list = nil
	o.mu.Unlock()
	return d, id
}

func TestRehearsal(t *testing.T) {
	restore := func(ctx context.Context, d *daemon) error {
		_, err := d.Snapshots.Restore(ctx, &protocol.SnapshotMutationParams{SessionID: "ses_x", Name: "s"})
		return err
	}
	begin := func(ctx context.Context, d *daemon) error {
		_, err := d.Sessions.New(ctx, &protocol.SessionNewParams{
			SessionID: "ses_y", Start: protocol.SessionStart{Kind: protocol.StartSnapshot, SessionID: "ses_x", Snapshot: "s"},
		})
		return err
	}
	for name, what := range map[string]struct {
		do func(context.Context, *daemon) error
		id string
	}{"snapshot/restore": {restore, "ses_x"}, "session/new of a snapshot": {begin, "ses_y"}} {
		t.Run("plugin/PR-02 plugin/SN-07 "+name+" first opens plugins as the session will open them", func(t *testing.T) {
			o := &opened{}
			d, _ := o.rehearsed(t)
			if err := what.do(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			want := []string{"initialize", "plugin restore", "restore", "in " + what.id + " after ok", "told of " + what.id, "materialize"}
			if got := o.all(); !slices.Equal(got, want) {
				t.Errorf("tried by\n%q, want\n%q", got, want)
			}
		})
		for _, step := range []string{"initialize", "restore", "told of " + what.id, "materialize"} {
			t.Run("plugin/PR-02 plugin/SN-07 a failure of "+step+" in "+name+" changes nothing", func(t *testing.T) {
				o := &opened{}
				d, id := o.rehearsed(t)
				before := d.graph(t, id).Head
				o.fails = map[string]error{step: errors.New("no")}
				if err := what.do(t.Context(), d); !errors.As(err, new(*plugin.HookError)) {
					t.Errorf("error %v", err)
				}
				o.mend()
				if after := d.graph(t, id).Head; after != before {
					t.Errorf("the head was %+v, and is %+v", before, after)
				}
				if err := what.do(t.Context(), d); err != nil {
					t.Errorf("the next try: %v", err)
				}
			})
		}
		t.Run("plugin/PR-02 plugin/SN-07 a plugin call that does not return is abandoned, and "+name+" changes nothing", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				o := &opened{}
				d, id := o.rehearsed(t)
				before, began := d.graph(t, id).Head, time.Now()
				o.waits = map[string]chan struct{}{"restore": hang}
				if err := what.do(t.Context(), d); !errors.Is(err, workgroup.ErrSlowPlugin) || time.Since(began) > 11*time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				o.mend()
				if after := d.graph(t, id).Head; after != before {
					t.Errorf("the head was %+v, and is %+v", before, after)
				}
				if err := what.do(t.Context(), d); err != nil {
					t.Errorf("the next try: %v", err)
				}
				close(hang)
			})
		})
	}
}
