package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// optional is a plugin that puts its options into the prompt and counts its open sessions.
type optional struct{ open *atomic.Int32 }

func (optional) ID() string { return "optional" }

func (o optional) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	o.open.Add(1)
	return optionalInstance{o, string(ctx.Options)}, nil
}

type optionalInstance struct {
	optional
	options string
}

func (i optionalInstance) Register(r *plugin.Registrar) error {
	r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Content: "options " + i.options})
	return nil
}

func (i optionalInstance) Close() error {
	i.open.Add(-1)
	return nil
}

func TestSettings(t *testing.T) {
	options := func(id protocol.SessionID, text string) *protocol.SessionConfigureParams {
		return &protocol.SessionConfigureParams{SessionID: id, Options: protocol.PluginOptions{"optional": json.RawMessage(text)}}
	}
	t.Run("runtime/S05 settings changed during a turn apply to the next turn", func(t *testing.T) {
		var open atomic.Int32
		g := newGate("work")
		model := &remembering{Provider: replies(calls("work"), scripted.Reply{Text: "done"})}
		d := start(t, setup{model: model, tools: []tool.Provider{g}, plugins: []plugin.Factory{optional{&open}}})
		id := d.session(t)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), options(id, `"old"`)))
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), options(id, `"new"`)))
		close(g.open)
		d.wait(t, turn)
		d.turn(t, id, "and?")
		var systems []string
		for _, req := range model.asked {
			systems = append(systems, req.System[strings.Index(req.System, "options "):])
		}
		if want := []string{`options "old"`, `options "old"`, `options "new"`}; !slices.Equal(systems, want) {
			t.Errorf("prompts %q, want %q", systems, want)
		}
		d.stop()
		if n := open.Load(); n != 0 {
			t.Errorf("%d instances of a plugin were not closed", n)
		}
	})
	t.Run("runtime/S05 invalid settings are rejected with a pointer to the parameter", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		for _, p := range []*protocol.SessionConfigureParams{
			{Budget: &protocol.Budget{}}, {Budget: &protocol.Budget{Iterations: 1, NoProgress: -1}}, {Approval: &protocol.ApprovalConfig{Mode: "maybe"}},
			{Approval: &protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{{Tool: "[", Action: protocol.ApproveAllow}}}}, {Model: "none"},
			{Unknown: &protocol.UnknownOutcomeRule{DeadlineMs: new(int64(-1))}},
		} {
			p.SessionID = id
			if _, err := d.Sessions.Configure(t.Context(), p); err == nil {
				t.Errorf("%+v was taken", p)
			}
		}
	})
}

// choosy is a plugin that accepts only the options "good".
var choosy = plugin.Builder("choosy", func(ctx plugin.BuildContext) (plugin.Spec, error) {
	if o := string(ctx.Options); o != "" && o != `"good"` {
		return nil, fmt.Errorf("options: not %s", o)
	}
	return func(*plugin.Registrar) error { return nil }, nil
})

func TestRejectedOptions(t *testing.T) {
	with := func(id protocol.SessionID, text string) *protocol.SessionConfigureParams {
		return &protocol.SessionConfigureParams{SessionID: id, Options: protocol.PluginOptions{"choosy": json.RawMessage(text)}}
	}
	refused := func(t *testing.T, what string, err error) {
		t.Helper()
		if e, ok := errors.AsType[*plugin.BuildError](err); !ok || e.Plugin != "choosy" {
			t.Errorf("%s: %v", what, err)
		}
	}
	t.Run("issue/2 options that a plugin rejects are rejected for new and existing sessions, also during a turn, and turns continue", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}, scripted.Reply{Text: "and more"}), tools: []tool.Provider{g}, plugins: []plugin.Factory{choosy}})
		_, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Options: with("", `"bad"`).Options})
		refused(t, "a new session", err)
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		queued := d.begin(t, id, "and?").TurnID
		<-g.called
		_, err = d.Sessions.Configure(t.Context(), with(id, `"bad"`))
		refused(t, "a session with a running turn", err)
		close(g.open)
		for _, turn := range []protocol.TurnID{turn, queued} {
			if report := d.wait(t, turn); report.State != protocol.TurnCompleted {
				t.Errorf("a turn ended with %+v", report.Outcome)
			}
		}
		_, err = d.Sessions.Configure(t.Context(), with(id, `"bad"`))
		refused(t, "one that is idle", err)
	})
	t.Run("issue/2 new options repair a session whose options are now rejected, and a repeated request gets its first answer", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: []plugin.Factory{hooked{"choosy", func(*plugin.Registrar) {}}}})
		id := d.session(t)
		p := with(id, `"bad"`)
		p.IdempotencyKey = "k"
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), p))
		d = d.restart(t, func(s *setup) { s.plugins = []plugin.Factory{choosy} })
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), with(id, `"good"`)))
		if again := must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), p)); !again.Duplicate {
			t.Errorf("repeated: %+v", again)
		}
		if report := d.turn(t, id, "go"); report.State != protocol.TurnCompleted {
			t.Errorf("a turn ended with %+v", report.Outcome)
		}
	})
}

func TestOptionsOfUnknownPlugins(t *testing.T) {
	t.Run("plugin/PH-08 options for an unknown plugin are rejected, and options of a plugin that disappeared stay", func(t *testing.T) {
		var open atomic.Int32
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: []plugin.Factory{optional{&open}}})
		with := func(id string) protocol.PluginOptions {
			return protocol.PluginOptions{id: json.RawMessage(`"x"`), "standard": json.RawMessage(`{}`)}
		}
		refused := func(what string, err error) {
			t.Helper()
			e, ok := errors.AsType[*param.Error](err)
			if !ok || e.Pointer != "/options/optoinal" || !strings.Contains(e.Reason, `did you mean "optional"?`) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Options: with("optoinal")})
		refused("a new session", err)
		id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Options: with("optional")})).SessionID
		_, err = d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Options: with("optoinal")})
		refused("other settings", err)
		d = d.restart(t, func(s *setup) { s.plugins = nil })
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Options: with("optional")}))
		if report := d.turn(t, id, "go"); report.State != protocol.TurnCompleted {
			t.Errorf("a turn without the plugin ended as %s", report.State)
		}
	})
}
