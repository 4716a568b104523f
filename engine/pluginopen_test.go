package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// opened is a protocol that records the order of the steps of an open, and fails or blocks where the test says.
type opened struct {
	notes
	fails map[string]error
	waits map[string]chan struct{}
}

func (o *opened) at(step string) error {
	o.add(step)
	o.mu.Lock()
	wait, err := o.waits[step], o.fails[step]
	o.mu.Unlock()
	if wait != nil {
		<-wait
	}
	return err
}

// mend makes the failing step of the protocol succeed from now on.
func (o *opened) mend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails, o.waits = nil, nil
}

func (o *opened) callbacks(plugin.BuildContext) plugin.ProtocolSession {
	return plugin.ProtocolSession{
		Initialize: func(context.Context, protocol.SessionID) error { return o.at("initialize") },
		Restore: func(_ context.Context, v *plugin.View) error {
			if v == nil || v.Session.ID == "" {
				return errors.New("no view")
			}
			return o.at("restore")
		},
		Materialize: func(context.Context, *plugin.Materialization) (*plugin.Materialized, error) {
			return nil, o.at("materialize")
		},
	}
}

func (o *opened) listen(r *plugin.Registrar) {
	r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error {
		if e.Kind != plugin.SessionRestored {
			return nil
		}
		return o.at("told of " + string(e.View.Session.ID))
	})
}

// remember is a keeper that records when its state is restored.
func (o *opened) remember() *keeper {
	return &keeper{register: func(k *kept, _ *plugin.Registrar) {
		k.restoring = func() { o.add("plugin restore") }
	}}
}

func (d *daemon) tools(t *testing.T, id protocol.SessionID) error {
	t.Helper()
	_, err := d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id})
	return err
}

func TestOpening(t *testing.T) {
	t.Run("plugin/PR-02 plugin/HK-25 initialize runs before restores, then the protocol restores, then all plugins are notified", func(t *testing.T) {
		o := &opened{}
		s := with(o.remember(), hooked{"listener", o.listen})
		s.driver = scheme{callbacks: o.callbacks}
		d := start(t, s)
		id := d.session(t)
		d.holds(t, id, "x", "")
		first := []string{"initialize", "restore", "told of " + string(id), "materialize"}
		if got := o.all(); !slices.Equal(got, first) {
			t.Errorf("a new session was opened by %q, want %q", got, first)
		}
		d.turn(t, id, "nothing is opened again")
		d = d.restart(t, nil)
		d.turn(t, id, "go")
		again := append(first, "initialize", "plugin restore", "restore", "told of "+string(id), "materialize")
		if got := o.all(); !slices.Equal(got, again) {
			t.Errorf("opened by %q, want %q", got, again)
		}
	})
	for _, step := range []string{"initialize", "restore", "told of ses_x", "materialize"} {
		t.Run("plugin/PR-02 plugin/HK-25 a failure of "+step+" opens nothing, and the id stays usable", func(t *testing.T) {
			o := &opened{fails: map[string]error{step: errors.New("no")}}
			s := with(hooked{"listener", o.listen})
			s.driver = scheme{callbacks: o.callbacks}
			d := start(t, s)
			must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{SessionID: "ses_x", Cwd: t.TempDir()}))
			if err := d.tools(t, "ses_x"); !errors.As(err, new(*plugin.HookError)) {
				t.Errorf("opened with %v", err)
			}
			if report := d.turn(t, "ses_x", "go"); report.State != protocol.TurnFailed {
				t.Errorf("a turn ended as %s", report.State)
			}
			o.mend()
			if err := d.tools(t, "ses_x"); err != nil {
				t.Errorf("the next try: %v", err)
			}
		})
	}
	t.Run("plugin/PR-02 a callback that does not return is abandoned, and the id stays usable", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			o := &opened{waits: map[string]chan struct{}{"restore": hang}}
			d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), driver: scheme{callbacks: o.callbacks}})
			id := d.session(t)
			began := time.Now()
			if err := d.tools(t, id); !errors.Is(err, workgroup.ErrSlowPlugin) || time.Since(began) > 11*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			o.mend()
			if report := d.turn(t, id, "go"); report.State != protocol.TurnCompleted {
				t.Errorf("the next try: %s %+v", report.State, report.Issues)
			}
			close(hang)
		})
	})
	t.Run("plugin/PR-02 a panic fails the open", func(t *testing.T) {
		d := start(t, setup{model: replies(), driver: scheme{callbacks: func(plugin.BuildContext) plugin.ProtocolSession {
			return plugin.ProtocolSession{Initialize: func(context.Context, protocol.SessionID) error { panic("clumsy") }}
		}}})
		if err := d.tools(t, d.session(t)); !errors.As(err, new(*plugin.PanicError)) {
			t.Errorf("opened with %v", err)
		}
	})
}

// materializing is a protocol that records the options of the test and keeps the requests that it gets.
type materializing struct {
	notes
	gives *plugin.Materialized
}

func (m *materializing) callbacks(plugin.BuildContext) plugin.ProtocolSession {
	return plugin.ProtocolSession{Materialize: func(_ context.Context, is *plugin.Materialization) (*plugin.Materialized, error) {
		note := map[bool]string{true: "root ", false: "child "}[is.Root] + string(is.Options)
		if is.Recorded != nil {
			note += " " + string(is.Recorded.Payload)
		}
		m.add(note)
		return m.gives, nil
	}}
}

func turnOptions(payload string) protocol.TurnOptions {
	return protocol.TurnOptions{SchemaVersion: 1, Payload: json.RawMessage(payload)}
}

// recorded returns the turn options that the next turn of a session would have.
func (d *daemon) recorded(t *testing.T, id protocol.SessionID) string {
	t.Helper()
	res := must[*protocol.OperationQueryResult](t)(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "recorded"}))
	return string(res.Output)
}

// recorder reports the turn options that a plugin sees.
var recorder = hooked{"recorder", func(r *plugin.Registrar) {
	r.Operations().Query(protocol.OperationInfo{Name: "recorded"}, func(ctx context.Context, call *plugin.OperationCall) (json.RawMessage, error) {
		view, err := call.Host.State.View(ctx, "")
		if err != nil || view.TurnOptions == nil {
			return json.RawMessage(`"none"`), err
		}
		return view.TurnOptions.Payload, nil
	})
}}

func TestMaterialize(t *testing.T) {
	began := func(t *testing.T, m *materializing) (*daemon, protocol.SessionID) {
		t.Helper()
		s := with(recorder, compactor("sum", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) { return summary("so far"), nil }))
		s.driver = scheme{callbacks: m.callbacks}
		s.config = func(c *engine.Config) {
			c.Defaults.Options = protocol.PluginOptions{"scheme": json.RawMessage(`{"o":1}`)}
		}
		d := start(t, s)
		return d, d.session(t)
	}
	t.Run("plugin/PR-03 the protocol is called at every open of roots, forks and children, and its last answer is recorded", func(t *testing.T) {
		m := &materializing{}
		d, id := began(t, m)
		if got := d.recorded(t, id); got != `"none"` {
			t.Errorf("nothing was recorded, and there is %s", got)
		}
		m.gives = &plugin.Materialized{Options: turnOptions(`1`), AllFrames: true}
		d = d.restart(t, nil)
		if got := d.recorded(t, id); got != "1" {
			t.Errorf("recorded %s", got)
		}
		m.gives = nil
		d = d.restart(t, nil)
		if got := d.recorded(t, id); got != "1" {
			t.Errorf("recorded %s after an open that recorded nothing", got)
		}
		m.gives = &plugin.Materialized{Options: turnOptions(`2`), AllFrames: true}
		fork := d.fork(t, id, "").SessionID
		if got := d.recorded(t, fork); got != "2" {
			t.Errorf("the fork has %s", got)
		}
		child := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
			Cwd: t.TempDir(), Authority: protocol.Authority{Subagent: &protocol.Subagent{Parent: id, Capability: "c", Depth: 1, MaxDepth: 2}},
		})).SessionID
		if got := d.recorded(t, child); got != "2" {
			t.Errorf("the child has %s", got)
		}
		want := []string{`root {"o":1}`, `root {"o":1}`, `root {"o":1} 1`, `root {"o":1} 1`, `child {"o":1}`}
		if got := m.all(); !slices.Equal(got, want) {
			t.Errorf("asked %q, want %q", got, want)
		}
	})
	t.Run("plugin/PR-03 options of a frame apply to frames opened from it, and options of all frames apply to all", func(t *testing.T) {
		m := &materializing{gives: &plugin.Materialized{Options: turnOptions(`"all"`), AllFrames: true}}
		d, id := began(t, m)
		d.turn(t, id, "one")
		leaf := d.graph(t, id).Head.Leaf
		compact := func() {
			t.Helper()
			must[*protocol.SessionCompactResult](t)(d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}))
		}
		compact()
		if got := d.recorded(t, id); got != `"all"` {
			t.Errorf("in the next frame there is %s", got)
		}
		m.gives = &plugin.Materialized{Options: turnOptions(`"mine"`)}
		d = d.restart(t, nil)
		d.recorded(t, id)
		m.gives = nil
		compact()
		d = d.restart(t, nil)
		if got := d.recorded(t, id); got != `"mine"` {
			t.Errorf("a frame that opened from one with options of its own has %s", got)
		}
		must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: leaf}))
		if got := d.recorded(t, id); got != `"all"` {
			t.Errorf("the first frame has %s", got)
		}
	})
	t.Run("plugin/PR-03 options of a frame are stored once, however many frames open from it", func(t *testing.T) {
		large := `"` + strings.Repeat("x", protocol.MaxTurnOptions-2) + `"`
		m := &materializing{gives: &plugin.Materialized{Options: turnOptions(large)}}
		d, id := began(t, m)
		d.recorded(t, id)
		const most = persistence.MaxCommitBytes/protocol.MaxTurnOptions + 1
		for range most {
			must[*protocol.SessionCompactResult](t)(d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}))
		}
		if got := d.recorded(t, id); got != large {
			t.Errorf("after %d frames there are options of %d bytes", most, len(got))
		}
		if got := d.restart(t, nil).recorded(t, id); got != large {
			t.Errorf("after a restart there are options of %d bytes", len(got))
		}
	})
	t.Run("plugin/PR-03 an open that records unchanged options writes nothing", func(t *testing.T) {
		for name, callbacks := range map[string]func(plugin.BuildContext) plugin.ProtocolSession{
			"the same again": (&materializing{gives: &plugin.Materialized{Options: turnOptions(`1`), AllFrames: true}}).callbacks, "no callbacks": nil,
		} {
			synctest.Test(t, func(t *testing.T) { opensWithoutWriting(t, name, callbacks) })
		}
	})
	t.Run("plugin/PR-03 plugin/PR-04 options without a version or with invalid JSON fail the open", func(t *testing.T) {
		for _, o := range []protocol.TurnOptions{{Payload: json.RawMessage(`1`)}, {SchemaVersion: 1, Payload: json.RawMessage(`{`)}, {SchemaVersion: 1}} {
			m := &materializing{gives: &plugin.Materialized{Options: o}}
			d, id := began(t, m)
			if err := d.tools(t, id); !errors.As(err, new(*plugin.OptionsError)) {
				t.Errorf("%+v: opened with %v", o, err)
			}
		}
	})
}

func opensWithoutWriting(t *testing.T, name string, callbacks func(plugin.BuildContext) plugin.ProtocolSession) {
	d := start(t, setup{model: replies(), driver: scheme{callbacks: callbacks}})
	id := d.session(t)
	if err := d.tools(t, id); err != nil {
		t.Fatal(err)
	}
	d = d.restart(t, nil)
	written := func() int64 {
		return must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.UpdatedAtMs
	}
	before := written()
	time.Sleep(time.Second)
	if err := d.tools(t, id); err != nil {
		t.Fatal(err)
	}
	if written() != before {
		t.Errorf("%s: something was written", name)
	}
}
