package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"lashd/engine"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// restricted is a session of a daemon with the tools work, secret and other, with what its plugins may do. What wanted gives
// is wanted before its turn.
func restricted(t *testing.T, a protocol.Authority, wanted ...plugin.Directive) (d *daemon, id protocol.SessionID, host plugin.LifecycleService) {
	t.Helper()
	d = start(t, setup{
		cwd: t.TempDir(), model: replies(scripted.Reply{Text: "ok"}), tools: []tool.Provider{says("work", "x"), says("secret", "x"), says("other", "x")},
		plugins: plugins(hooked{"a", func(r *plugin.Registrar) {
			r.Context().Transform(0, func(_ context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
				if v.View.Session.ID == "ses_asks" {
					host = v.Host.Lifecycle
				}
				return pc, nil
			})
			r.Turn().Before(func(_ context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) { return wanted, nil })
		}}),
	})
	p := &protocol.SessionNewParams{SessionID: "ses_asks", Cwd: d.setup.cwd, Authority: a}
	if sub := a.Subagent; sub != nil {
		p.Authority.Subagent = new(*sub)
		p.Authority.Subagent.Parent = d.session(t)
	}
	id = must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), p)).SessionID
	d.turn(t, id, "go")
	return d, id, host
}

func TestRequestsOfPlugins(t *testing.T) {
	bound := protocol.Authority{Tools: []string{"work", "other"}, Hidden: []string{"other"}}
	t.Run("plugin/S-15 plugin/HC-03 a session that a plugin creates has no more authority than the requesting session", func(t *testing.T) {
		d, id, host := restricted(t, bound)
		free := d.session(t)
		for name, c := range map[string]struct {
			p    protocol.SessionNewParams
			want []string
		}{
			"a root":                     {protocol.SessionNewParams{}, []string{"work"}},
			"a root that wants all":      {protocol.SessionNewParams{Authority: protocol.Authority{Tools: []string{"secret", "work", "other"}}}, []string{"work"}},
			"a root without tools":       {protocol.SessionNewParams{Authority: protocol.Authority{NoTools: true}}, nil},
			"a fork of its own":          {protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartCurrent}}, []string{"work"}},
			"a fork of an open one":      {protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: free}}, []string{"work"}},
			"a child":                    {protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild}}, []string{"work"}},
			"a child of an open session": {protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: free}}, []string{"work"}},
		} {
			made, err := host.CreateSession(t.Context(), &c.p)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if got := d.shown(t, made.SessionID); !slices.Equal(got, c.want) {
				t.Errorf("%s has the tools %q, want %q", name, got, c.want)
			}
		}
		_, err := host.CreateSession(t.Context(), &protocol.SessionNewParams{Authority: protocol.Authority{Tools: []string{"secret"}}})
		if e, ok := errors.AsType[*param.Error](err); !ok || e.Pointer != "/authority/tools" {
			t.Errorf("with a tool that %s does not have: %v", id, err)
		}
	})
	t.Run("plugin/S-15 plugin/HK-19 a session that a directive creates has no more authority either", func(t *testing.T) {
		wanted := plugin.Directive{Kind: plugin.CreateSession, Session: &protocol.SessionNewParams{SessionID: "ses_made"}}
		d, _, _ := restricted(t, bound, wanted)
		if got := d.shown(t, "ses_made"); !slices.Equal(got, []string{"work"}) {
			t.Errorf("it has the tools %q", got)
		}
	})
	t.Run("plugin/S-15 such a session and its subagents cannot nest deeper", func(t *testing.T) {
		d, _, host := restricted(t, protocol.Authority{Subagent: &protocol.Subagent{Depth: 1, MaxDepth: 1}})
		root := must[*protocol.SessionNewResult](t)(host.CreateSession(t.Context(), &protocol.SessionNewParams{}))
		child := func(parent protocol.SessionID) error {
			_, err := host.CreateSession(t.Context(), &protocol.SessionNewParams{
				Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: parent},
			})
			return err
		}
		for _, parent := range []protocol.SessionID{root.SessionID, "ses_asks", d.session(t)} {
			if err := child(parent); !errors.As(err, new(*param.Error)) {
				t.Errorf("a child of %s: %v", parent, err)
			}
		}
	})
	t.Run("plugin/S-15 plugin/TL-15 a session without tools has none and passes none on", func(t *testing.T) {
		d, id, host := restricted(t, protocol.Authority{NoTools: true, Subagent: &protocol.Subagent{Depth: 1, MaxDepth: 1}})
		fork := d.fork(t, id, "").SessionID
		child := must[*protocol.SessionNewResult](t)(host.CreateSession(t.Context(), &protocol.SessionNewParams{
			Authority: protocol.Authority{NoTools: true}, Relation: protocol.Relation{Kind: protocol.RelationChild},
		})).SessionID
		d = d.restart(t, nil)
		for _, one := range []protocol.SessionID{id, fork, child} {
			overlay := &protocol.SessionOverlayParams{SessionID: one, Tools: []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "work"}}}}
			must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", overlay))
			if got := d.shown(t, one); len(got) != 0 {
				t.Errorf("%s shows %q", one, got)
			}
			if _, err := d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: one, Name: "work"}); !errors.Is(err, engine.ErrToolNotFound) {
				t.Errorf("%s calls: %v", one, err)
			}
		}
		for _, a := range []protocol.Authority{{NoTools: true, Tools: []string{"work"}}, {Tools: []string{"work"}, Subagent: &protocol.Subagent{Parent: id, Depth: 1, MaxDepth: 1}}} {
			if _, err := d.grant(t, a); !errors.As(err, new(*param.Error)) {
				t.Errorf("%+v: %v", a, err)
			}
		}
	})
	t.Run("plugin/HC-04 plugin/HC-08 a plugin can delete only subagents of its session; lists include subagents on request", func(t *testing.T) {
		d, id, host := restricted(t, protocol.Authority{})
		other := d.session(t)
		child := d.worker(t, id, "helper")
		listed := func(children bool) (ids []protocol.SessionID) {
			for _, s := range must[*protocol.SessionListResult](t)(d.Sessions.List(t.Context(), &protocol.SessionListParams{Children: children})).Data {
				ids = append(ids, s.ID)
			}
			return ids
		}
		if got := listed(false); slices.Contains(got, child) || len(got) != 2 {
			t.Errorf("listed %q", got)
		}
		if got := listed(true); !slices.Contains(got, child) || len(got) != 3 {
			t.Errorf("with children, listed %q", got)
		}
		d.turn(t, child, "hi")
		for _, theirs := range []protocol.SessionID{id, other} {
			if err := host.DeleteSession(t.Context(), theirs); !errors.As(err, new(*param.Error)) {
				t.Errorf("deleting %s: %v", theirs, err)
			}
		}
		for range 2 {
			if err := host.DeleteSession(t.Context(), child); err != nil {
				t.Error(err)
			}
		}
		if got := listed(true); slices.Contains(got, child) || len(got) != 2 {
			t.Errorf("after it is deleted, listed %q", got)
		}
		if rows := d.ledger(t, id); len(rows) != 2 || rows[0].source != "helper" || rows[0].calls != 1 {
			t.Errorf("the ledger is %+v", rows)
		}
	})
}
