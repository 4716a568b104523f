package plugin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// following is a plugin that records the steps of resuming a session. The step named by fail fails.
type following struct {
	steps []string
	fail  string
	asked plugin.Materialization
}

func (f *following) step(name string) error {
	f.steps = append(f.steps, name)
	if f.fail == name {
		return errBoom
	}
	return nil
}

func (f *following) register(r *plugin.Registrar) {
	r.Protocol().Session(plugin.ProtocolSession{
		Initialize: func(context.Context, protocol.SessionID) error { return f.step("initialize") },
		Restore:    func(_ context.Context, v *plugin.View) error { return f.step("restore to " + v.Session.Title) },
		Materialize: func(_ context.Context, m *plugin.Materialization) (*plugin.Materialized, error) {
			f.asked = *m
			return &plugin.Materialized{Options: protocol.TurnOptions{SchemaVersion: 1, Payload: raw(`{}`)}}, f.step("materialize")
		},
	})
	r.Execution().Executor(executing{f})
	r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error {
		return f.step(string(e.Kind) + " of " + e.View.Session.Title)
	})
}

// executing is a code executor that records restored state.
type executing struct{ f *following }

func (x executing) Execute(context.Context, *plugin.CodeCall, plugin.CellHost) (turn.CellReply, error) {
	return turn.CellReply{}, nil
}
func (executing) Dirty() bool { return true }
func (x executing) Snapshot(context.Context) (plugin.ExecutionChange, error) {
	return plugin.ExecutionChange{}, x.f.step("snapshot")
}
func (executing) Stored() {}
func (x executing) Restore(_ context.Context, values map[string][]byte) error {
	return x.f.step("restore cells " + string(values["v"]))
}
func TestResume(t *testing.T) {
	all := []string{"initialize", "restore cells x", "restore to hi", "sessionRestored of hi", "materialize"}
	stored := plugin.Stored{
		Plugins: &plugin.Snapshot{Entries: map[string]plugin.Entry{"gone": {}}}, Execution: map[string][]byte{"v": []byte("x")},
		View: &plugin.View{Session: protocol.Session{Title: "hi"}}, Recorded: &protocol.TurnOptions{SchemaVersion: 3},
	}
	begin := func(t *testing.T, f *following, more ...plugin.Factory) *plugin.Session {
		h := newHost(t, append(more, with("p", f.register))...)
		s, err := h.Open(t.Context(), "d", protocol.PluginOptions{"p": raw(`{"x":1}`)}, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	t.Run("plugin/PR-02 resuming a session initializes it, restores it, emits an event and returns the options", func(t *testing.T) {
		f, m := &following{}, mem("m")
		got, err := begin(t, f, m).Resume(t.Context(), stored)
		want := plugin.Resumed{Unknown: []string{"gone"}, Options: &plugin.Materialized{Options: protocol.TurnOptions{SchemaVersion: 1, Payload: raw(`{}`)}}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || !slices.Equal(f.steps, all) {
			t.Errorf("%v; steps %q, want %q; %s", err, f.steps, all, diff)
		}
		asked := plugin.Materialization{SessionID: "s", Root: true, Options: raw(`{"x":1}`), Recorded: stored.Recorded}
		if diff := cmp.Diff(asked, f.asked); diff != "" || len(m.restored) != 1 {
			t.Errorf("%d plugins are restored; %s", len(m.restored), diff)
		}
	})
	for i, step := range all {
		t.Run("plugin/PR-02 the first error stops resuming: "+step, func(t *testing.T) {
			f := &following{fail: step}
			got, err := begin(t, f).Resume(t.Context(), stored)
			if !errors.Is(err, errBoom) || got.Options != nil || !slices.Equal(f.steps, all[:i+1]) {
				t.Errorf("%+v, %v after %q", got, err, f.steps)
			}
		})
	}
	t.Run("plugin/PR-02 a plugin that fails to restore stops resuming", func(t *testing.T) {
		f, m := &following{}, mem("m")
		m.fail = errBoom
		unknown, err := begin(t, f, m).TakeBack(t.Context(), stored)
		if !errors.Is(err, errBoom) || unknown != nil || !slices.Equal(f.steps, all[:1]) {
			t.Errorf("%q, %v after %q", unknown, err, f.steps)
		}
	})
	t.Run("plugin/PR-02 without stored state nothing is restored", func(t *testing.T) {
		f, m := &following{}, mem("m")
		unknown, err := begin(t, f, m).TakeBack(t.Context(), plugin.Stored{})
		if unknown != nil || err != nil || !slices.Equal(f.steps, all[:1]) || m.restored != nil {
			t.Errorf("%q, %v after %q, and %q is restored", unknown, err, f.steps, m.restored)
		}
	})
	t.Run("only a lifecycle hook or a protocol needs the view of a session", func(t *testing.T) {
		looks := func(p plugin.ProtocolSession) bool {
			return open(t, with("p", func(r *plugin.Registrar) { r.Protocol().Session(p) })).NeedsView()
		}
		restores := plugin.ProtocolSession{Restore: func(context.Context, *plugin.View) error { return nil }}
		listener := open(t, listens("p", func(context.Context, *plugin.LifecycleEvent) error { return nil }))
		if looks(plugin.ProtocolSession{}) || !looks(restores) || !listener.NeedsView() || open(t).NeedsView() {
			t.Error("the observing tools are wrong")
		}
	})
}

func TestMaterialized(t *testing.T) {
	large := `"` + strings.Repeat("x", protocol.MaxTurnOptions-2) + `"`
	for _, c := range []struct {
		name string
		made *plugin.Materialized
		want string
	}{
		{"nothing", nil, ""},
		{"what holds", &plugin.Materialized{Options: protocol.TurnOptions{SchemaVersion: 1, Payload: raw(`{}`)}}, ""},
		{"no version", &plugin.Materialized{Options: protocol.TurnOptions{Payload: raw(`{}`)}}, "the schema version is missing"},
		{"no JSON", &plugin.Materialized{Options: protocol.TurnOptions{SchemaVersion: 1, Payload: raw(`{`)}}, "the payload is not JSON"},
		{"64 KiB", &plugin.Materialized{Options: protocol.TurnOptions{SchemaVersion: 1, Payload: raw(large)}}, ""},
		{"more", &plugin.Materialized{Options: protocol.TurnOptions{SchemaVersion: 1, Payload: raw(large + " ")}}, "65537 bytes exceed the limit of 65536 bytes"},
	} {
		t.Run("plugin/PR-03 only valid options are recorded: "+c.name, func(t *testing.T) {
			s := open(t, with("p", func(r *plugin.Registrar) {
				r.Protocol().Session(plugin.ProtocolSession{
					Materialize: func(context.Context, *plugin.Materialization) (*plugin.Materialized, error) { return c.made, nil },
				})
			}))
			got, err := s.Protocol().Materialize(t.Context(), &plugin.Materialization{})
			if c.want == "" && (err != nil || !cmp.Equal(got, c.made)) {
				t.Errorf("%v", err)
			}
			if refused, _ := errors.AsType[*plugin.OptionsError](err); c.want != "" && (refused == nil || refused.Err.Error() != c.want || got != nil) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestWhatAProtocolDoes(t *testing.T) {
	var before *plugin.BeforeModel
	s := open(t, with("p", func(r *plugin.Registrar) {
		r.Protocol().Session(plugin.ProtocolSession{
			AppendNodes: func(context.Context, []protocol.NodeBody) error { return nil },
			BeforeModel: func(_ context.Context, b *plugin.BeforeModel) (*protocol.FrameSwitch, error) {
				before = b
				return &protocol.FrameSwitch{Key: "k"}, nil
			},
		})
	}))
	if p, none := s.Protocol(), open(t).Protocol(); !p.Appends() || !p.Switches() || none.Appends() || none.Switches() {
		t.Error("a protocol without callbacks has some, or the other way round")
	}
	to, err := s.Protocol().BeforeModel(t.Context(), &plugin.BeforeModel{TurnID: "t"})
	if err != nil || to == nil || to.Key != "k" || before.TurnID != "t" {
		t.Errorf("%+v, %v for %+v", to, err, before)
	}
}
