package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"lashd/engine"
	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// grant creates a session with an authority.
func (d *daemon) grant(t *testing.T, a protocol.Authority) (*protocol.SessionNewResult, error) {
	t.Helper()
	return d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Authority: a})
}

// offered are the names of the tools that a session has.
func (d *daemon) offered(t *testing.T, id protocol.SessionID) (names []string) {
	t.Helper()
	for _, r := range must[*protocol.ToolListResult](t)(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id})).Data {
		names = append(names, r.Name)
	}
	return names
}

// shown are the names of the tools that a session shows to its model, in order.
func (d *daemon) shown(t *testing.T, id protocol.SessionID) (names []string) {
	t.Helper()
	for _, m := range must[*protocol.DebugPromptResult](t)(d.Sessions.PreviewPrompt(t.Context(), &protocol.DebugPromptParams{SessionID: id})).Tools {
		names = append(names, m.Name)
	}
	return names
}

// without fails the test if a session has the tool, or can call it, however it is offered.
func (d *daemon) without(t *testing.T, id protocol.SessionID, name string) {
	t.Helper()
	must[*protocol.ToolStateResult](t)(d.Tools.Refresh(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
	if got := d.offered(t, id); slices.Contains(got, name) {
		t.Fatalf("session %s has %q", id, got)
	}
	_, err := d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: name})
	if !errors.Is(err, engine.ErrToolNotFound) {
		t.Errorf("session %s calls %s: %v", id, name, err)
	}
}

func TestAuthority(t *testing.T) {
	k := &keeper{}
	s := with(k)
	s.tools = []tool.Provider{says("shown", "x"), says("secret", "x"), says("other", "x")}
	d := start(t, s)
	whole := t
	t.Run("plugin/SN-09 plugin/S-15 hidden tools stay hidden in forks, under overlays and after restarts", func(t *testing.T) {
		root := must[*protocol.SessionNewResult](t)(d.grant(t, protocol.Authority{Hidden: []string{"secret"}})).SessionID
		fork := d.fork(t, root, "").SessionID
		child := must[*protocol.SessionNewResult](t)(d.grant(t, protocol.Authority{Subagent: &protocol.Subagent{Parent: root, Depth: 1, MaxDepth: 2}}))
		if r := child.Session.Relation; r.Kind != protocol.RelationChild || r.Parent != root {
			t.Errorf("the child is %+v", r)
		}
		overlay := protocol.SessionOverlayParams{Tools: []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "secret"}}}}
		for range 2 {
			for _, id := range []protocol.SessionID{root, fork, d.fork(t, fork, "").SessionID, child.SessionID} {
				overlay.SessionID = id
				must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &overlay))
				d.without(t, id, "secret")
			}
			d = d.restart(whole, nil)
		}
	})
	t.Run("plugin/SN-09 plugins learn their session's authority whenever it is opened", func(t *testing.T) {
		want := protocol.Authority{Hidden: []string{"secret"}, Subagent: &protocol.Subagent{
			Parent: d.session(t), Capability: "review", Depth: 1, MaxDepth: 1,
		}}
		id := must[*protocol.SessionNewResult](t)(d.grant(t, want)).SessionID
		for range 2 {
			d.offered(t, id)
			b := seen(k, func() plugin.BuildContext { return k.built[len(k.built)-1] })
			if b.SessionID != id || b.Root() || !slices.Equal(b.Authority.Hidden, want.Hidden) || *b.Authority.Subagent != *want.Subagent {
				t.Errorf("built with %+v", b)
			}
			d = d.restart(whole, nil)
		}
	})
	t.Run("plugin/TL-15 a list of tools replaces the session's, in its order", func(t *testing.T) {
		id := must[*protocol.SessionNewResult](t)(d.grant(t, protocol.Authority{Tools: []string{"shown", "other"}})).SessionID
		if got := d.shown(t, id); !slices.Equal(got, []string{"shown", "other"}) {
			t.Errorf("has %q", got)
		}
	})
	t.Run("plugin/SN-08 a child never has more than its parent", func(t *testing.T) { narrowedChild(t, d) })
	t.Run("plugin/PH-13 the daemon shuts factories down", func(t *testing.T) {
		if err := d.Plugins.(*plugin.Host).Shutdown(context.WithoutCancel(t.Context())); err != nil || k.down != 1 {
			t.Errorf("%d calls, %v", k.down, err)
		}
	})
}

func narrowedChild(t *testing.T, d *daemon) {
	parent := must[*protocol.SessionNewResult](t)(d.grant(t, protocol.Authority{Tools: []string{"shown", "other"}})).SessionID
	sub := func(depth, most int) *protocol.Subagent {
		return &protocol.Subagent{Parent: parent, Depth: depth, MaxDepth: most}
	}
	ceiling := func(c protocol.Ceiling) protocol.Authority {
		return protocol.Authority{Subagent: sub(1, 1), Ceiling: &c}
	}
	for _, c := range []struct {
		asked   protocol.Authority
		tools   []string
		pointer string
	}{
		{protocol.Authority{Subagent: sub(1, 1)}, []string{"shown", "other"}, ""},
		{protocol.Authority{Subagent: sub(1, 1), Tools: []string{"secret", "other"}}, []string{"other"}, ""},
		{protocol.Authority{Subagent: sub(1, 1), Tools: []string{"secret"}}, nil, "/authority/tools"},
		{protocol.Authority{Subagent: sub(2, 3)}, nil, "/authority/subagent/depth"},
		{protocol.Authority{Subagent: sub(1, 0)}, nil, "/authority/subagent/depth"},
		{protocol.Authority{Hidden: []string{""}}, nil, "/authority/hiddenTools/0"},
		{protocol.Authority{Tools: []string{"other", ""}}, nil, "/authority/tools/1"},
		{protocol.Authority{Tools: []string{"other"}, NoTools: true}, nil, "/authority/noTools"},
		{ceiling(protocol.Ceiling{Tools: []string{""}}), nil, "/authority/ceiling/tools/0"},
		{ceiling(protocol.Ceiling{Hidden: []string{"x", ""}}), nil, "/authority/ceiling/hiddenTools/1"},
		{ceiling(protocol.Ceiling{Roots: []string{"/", "here"}}), nil, "/authority/ceiling/roots/1"},
		{ceiling(protocol.Ceiling{Policies: []protocol.Policy{{}, {Approval: protocol.ApprovalConfig{Mode: "no"}}}}), nil, "/authority/ceiling/policies/1/approval/mode"},
		{ceiling(protocol.Ceiling{Roots: []string{"/"}, Policies: []protocol.Policy{{}}}), []string{"shown", "other"}, ""},
	} {
		got, err := d.grant(t, c.asked)
		if e, ok := errors.AsType[*param.Error](err); ok && e.Pointer == c.pointer {
			continue
		}
		if err != nil || c.pointer != "" {
			t.Errorf("%+v: %v, want an error at %q", c.asked, err, c.pointer)
		} else if names := d.shown(t, got.SessionID); !slices.Equal(names, c.tools) {
			t.Errorf("%+v: has %q, want %q", c.asked, names, c.tools)
		}
	}
	below := must[*protocol.SessionNewResult](t)(d.grant(t, protocol.Authority{Subagent: sub(1, 1)})).SessionID
	if a := d.fork(t, below, "").Session.Authority.Subagent; a == nil || a.Depth != 1 || a.MaxDepth != 1 {
		t.Errorf("outside/29 the fork of a child is as deep as %+v", a)
	}
	none := protocol.Relation{Kind: protocol.RelationChild, Parent: "ses_none"}
	for _, from := range []protocol.SessionStart{{}, {Kind: protocol.StartExisting, SessionID: parent}} {
		if made, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Relation: none, Start: from}); !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("outside/29 a child of no session: %+v, %v", made, err)
		}
	}
	fork := &protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: parent}, Authority: protocol.Authority{Tools: []string{"secret"}}}
	if made, err := d.Sessions.New(t.Context(), fork); !errors.As(err, new(*param.Error)) {
		t.Errorf("outside/29 a fork with a tool that the session has not: %+v, %v", made, err)
	}
}

// TestInvalidAuthorities grants a session invalid authority. The error names the place of the invalid value.
func TestInvalidAuthorities(t *testing.T) {
	d := start(t, setup{model: replies(), tools: []tool.Provider{says("a", "x")}})
	many := make([]protocol.Policy, authority.MaxPolicies+1)
	for _, c := range []struct {
		granted protocol.Authority
		pointer string
	}{
		{protocol.Authority{NoTools: true, Tools: []string{"a"}}, "/authority/noTools"},
		{protocol.Authority{NoTools: true}, ""},
		{protocol.Authority{Tools: []string{"a", ""}}, "/authority/tools/1"},
		{protocol.Authority{Hidden: []string{""}}, "/authority/hiddenTools/0"},
		{protocol.Authority{Ceiling: &protocol.Ceiling{Tools: []string{""}}}, "/authority/ceiling/tools/0"},
		{protocol.Authority{Ceiling: &protocol.Ceiling{Hidden: []string{"a", ""}}}, "/authority/ceiling/hiddenTools/1"},
		{protocol.Authority{Ceiling: &protocol.Ceiling{Roots: []string{"/", "sub"}}}, "/authority/ceiling/roots/1"},
		{protocol.Authority{Ceiling: &protocol.Ceiling{Policies: []protocol.Policy{{}, {Approval: protocol.ApprovalConfig{Mode: "odd"}}}}}, "/authority/ceiling/policies/1/approval/mode"},
		{protocol.Authority{Ceiling: &protocol.Ceiling{Policies: many}}, "/authority/ceiling/policies"},
		{protocol.Authority{Ceiling: &protocol.Ceiling{Policies: many[1:]}}, ""},
	} {
		_, err := d.grant(t, c.granted)
		var pointer string
		if e, ok := errors.AsType[*param.Error](err); ok {
			pointer = e.Pointer
		}
		if pointer != c.pointer || (err == nil) != (c.pointer == "") {
			t.Errorf("outside/29 %+v: %v, want it at %q", c.granted, err, c.pointer)
		}
	}
}

// TestUnreadableTools lets a session request other sessions while its removed tools cannot be read. It gets none.
func TestUnreadableTools(t *testing.T) {
	d, id, host := asks(t, allowing)
	must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"run": false}}))
	db := must[*sql.DB](t)(sql.Open("sqlite", filepath.Join(d.store.Dir(), "lashd.db")+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	must[sql.Result](t)(db.Exec("ALTER TABLE components RENAME TO lost"))
	if made, err := host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Approval: allowing}); err == nil {
		t.Errorf("outside/29 there is %s", made.SessionID)
	}
	must[sql.Result](t)(db.Exec("ALTER TABLE lost RENAME TO components"))
}

// TestToolsThatAreLeft has a session lose one of its tools. Sessions that it asks for have the others.
func TestToolsThatAreLeft(t *testing.T) {
	d, id, host := restricted(t, protocol.Authority{})
	must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"secret": false}}))
	made := must[*protocol.SessionNewResult](t)(host.CreateSession(t.Context(), &protocol.SessionNewParams{})).SessionID
	if got := d.shown(t, made); !slices.Equal(got, []string{"other", "work"}) {
		t.Errorf("outside/29 it has the tools %q", got)
	}
}
