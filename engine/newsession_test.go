package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// family is a session from which a plugin creates others, and an unrelated one.
type family struct {
	*daemon
	id, other protocol.SessionID
	host      plugin.Capabilities
	keeper    *keeper
}

// born makes a family. The session has the snapshot "early", taken after its first turn.
func born(t *testing.T) *family {
	k := &keeper{}
	d, id, host := lent(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: []plugin.Factory{k}, tools: []tool.Provider{says("a", "x"), says("b", "x")}})
	f := &family{daemon: d, id: id, host: host, keeper: k}
	d.holds(t, id, "then", "")
	must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "early"}))
	d.turn(t, id, "more")
	d.holds(t, id, "now", "")
	prompt := "of the current"
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: &prompt}))
	made, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: d.setup.cwd, Prompt: new("of the other")})
	if err != nil {
		t.Fatal(err)
	}
	f.other = made.SessionID
	d.turn(t, f.other, "hello")
	d.holds(t, f.other, "beside", "")
	return f
}

// create creates a session through the plugin.
func (f *family) create(t *testing.T, p *protocol.SessionNewParams) protocol.Session {
	t.Helper()
	made := must[*protocol.SessionNewResult](t)(f.host.Lifecycle.CreateSession(t.Context(), p))
	row := must[persistence.Session](t)(f.store.Session(t.Context(), made.SessionID)).Session
	if made.Session.Head != row.Head || made.Session.Relation.Kind != row.Relation.Kind || made.Session.Seq != row.Seq {
		t.Errorf("told of %+v, stored is %+v", made.Session, row)
	}
	return row
}

func TestCreateSession(t *testing.T) {
	t.Run("plugin/HC-03 plugin/SN-10 the start of a new session decides its history, settings and state unless the request sets them", startMatrix)
	t.Run("plugin/HC-03 a client has no current session, and starts with the daemon's settings", func(t *testing.T) {
		f := born(t)
		made := must[*protocol.SessionNewResult](t)(f.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir()}))
		if made.Session.Config.Prompt != "" {
			t.Errorf("prompt %q", made.Session.Config.Prompt)
		}
		from := &protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: f.other}}
		made = must[*protocol.SessionNewResult](t)(f.Sessions.New(t.Context(), from))
		if got := f.held(t, made.SessionID, "keeper").Text; made.Session.Config.Prompt != "of the other" || got != "beside" {
			t.Errorf("started there with prompt %q, keeping %q", made.Session.Config.Prompt, got)
		}
	})
	t.Run("plugin/HC-03 an id that is or was in use is rejected", func(t *testing.T) {
		f := born(t)
		gone := f.session(t)
		must[*protocol.SeqResult](t)(f.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: gone}))
		for id, want := range map[protocol.SessionID]error{f.id: persistence.ErrExists, f.other: persistence.ErrExists, gone: persistence.ErrDeleted} {
			for _, kind := range []protocol.StartKind{protocol.StartEmpty, protocol.StartCurrent} {
				p := &protocol.SessionNewParams{SessionID: id, Start: protocol.SessionStart{Kind: kind}}
				if _, err := f.host.Lifecycle.CreateSession(t.Context(), p); !errors.Is(err, want) {
					t.Errorf("%s as %s: %v, want %v", kind, id, err, want)
				}
			}
		}
	})
	t.Run("plugin/HC-03 a child has a parent and never more authority than it", relations)
	t.Run("plugin/HC-03 the first nodes of a session are in its history and its log", func(t *testing.T) {
		f := born(t)
		for _, kind := range []protocol.StartKind{protocol.StartEmpty, protocol.StartCurrent} {
			row := f.create(t, &protocol.SessionNewParams{Start: protocol.SessionStart{Kind: kind}, Nodes: summary("so far")})
			if got := said(f.graph(t, row.ID).Data); got[len(got)-1] != "so far" {
				t.Errorf("%s: history %q", kind, got)
			}
			o := f.observe(t, row.ID, 0)
			if e := o.typed(protocol.EventItemCompleted); e.Item == nil || e.Item.Text != "so far" {
				t.Errorf("%s: told of %+v", kind, e)
			}
			if report := f.turn(t, row.ID, "go on"); report.State != protocol.TurnCompleted {
				t.Errorf("%s: a turn ended as %+v", kind, report.Outcome)
			}
		}
	})
	t.Run("plugin/HC-03 plugin/PH-06 a failed creation leaves nothing and frees the id", failedBirths)
	t.Run("plugin/HC-03 an invalid request is rejected with a pointer to the field", refusedBirths)
}

func startMatrix(t *testing.T) {
	f := born(t)
	for _, c := range []struct {
		start  protocol.SessionStart
		prompt string
		said   []string
		kept   string
	}{
		{protocol.SessionStart{}, "of the current", nil, ""},
		{protocol.SessionStart{Kind: protocol.StartEmpty}, "of the current", nil, ""},
		{protocol.SessionStart{Kind: protocol.StartCurrent}, "of the current", []string{"go", "ok", "more", "ok"}, "now"},
		{protocol.SessionStart{Kind: protocol.StartExisting, SessionID: f.other}, "of the other", []string{"hello", "ok"}, "beside"},
		{protocol.SessionStart{Kind: protocol.StartSnapshot, Snapshot: "early"}, "of the current", []string{"go", "ok"}, "then"},
		{protocol.SessionStart{Kind: protocol.StartSnapshot, SessionID: f.id, Snapshot: "early"}, "of the current", []string{"go", "ok"}, "then"},
	} {
		check := func(how string, p *protocol.SessionNewParams, prompt, kept string) {
			t.Helper()
			row := f.create(t, p)
			history := said(f.graph(t, row.ID).Data)
			if got := f.held(t, row.ID, "keeper").Text; row.Config.Prompt != prompt || !slices.Equal(history, c.said) || got != kept {
				t.Errorf("%+v %s: prompt %q, history %q, kept %q; want %q, %q, %q", c.start, how, row.Config.Prompt, history, got, prompt, c.said, kept)
			}
		}
		check("as a helper asks", plugin.NewSession(c.start), c.prompt, "")
		check("as JSON asks", decoded(t, c.start), c.prompt, c.kept)
		own := decoded(t, c.start)
		own.Prompt = new("its own")
		check("with settings of its own", own, "its own", c.kept)
	}
	if got := said(f.graph(t, f.id).Data); !slices.Equal(got, []string{"go", "ok", "more", "ok"}) {
		t.Errorf("the current session has %q", got)
	}
}

// decoded is a request as a plugin process sends it, without a source of plugin state.
func decoded(t *testing.T, start protocol.SessionStart) *protocol.SessionNewParams {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"start": start})
	p := &protocol.SessionNewParams{}
	if start.Kind == "" {
		raw = []byte(`{}`)
	}
	if err := errors.Join(err, json.Unmarshal(raw, p)); err != nil {
		t.Fatal(err)
	}
	return p
}

func relations(t *testing.T) {
	f := born(t)
	current := protocol.SessionStart{Kind: protocol.StartCurrent}
	root := f.create(t, plugin.NewSession(current))
	if r := root.Relation; r.Kind != protocol.RelationFork || r.Parent != "" || r.Source.SessionID != f.id {
		t.Errorf("a root that starts here is %+v", r)
	}
	ask := plugin.NewChild(current)
	ask.Relation.Cause = "tool call"
	child := f.create(t, ask)
	if r := child.Relation; r.Kind != protocol.RelationChild || r.Parent != f.id || r.Cause != "tool call" || r.Source.SessionID != f.id {
		t.Errorf("a child that starts here is %+v", r)
	}
	if b := seen(f.keeper, func() plugin.BuildContext { return f.keeper.built[len(f.keeper.built)-1] }); b.Parent != f.id || b.SessionID != child.ID {
		t.Errorf("its plugins are built with %+v", b)
	}
	narrow := f.create(t, &protocol.SessionNewParams{Authority: protocol.Authority{Tools: []string{"a"}, Subagent: &protocol.Subagent{Parent: f.id, Depth: 1, MaxDepth: 2}}})
	below := f.create(t, &protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: narrow.ID}})
	if got := f.shown(t, below.ID); !slices.Equal(got, []string{"a"}) || below.Authority.Subagent.Depth != 2 || below.Authority.Subagent.Parent != narrow.ID {
		t.Errorf("below it there is %q, %+v", got, below.Authority.Subagent)
	}
	_, err := f.host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: below.ID}})
	if p, ok := errors.AsType[*param.Error](err); !ok || p.Pointer != "/authority/subagent/depth" {
		t.Errorf("too deep: %v", err)
	}
	again := f.create(t, plugin.NewSession(protocol.SessionStart{Kind: protocol.StartExisting, SessionID: narrow.ID}))
	if got := f.shown(t, again.ID); !slices.Equal(got, []string{"a"}) {
		t.Errorf("a session that starts where tools are few has %q", got)
	}
}

func failedBirths(t *testing.T) {
	f := born(t)
	fails := func(what string, p *protocol.SessionNewParams, want func(error) bool) {
		t.Helper()
		p.SessionID = "ses_new"
		if _, err := f.host.Lifecycle.CreateSession(t.Context(), p); !want(err) {
			t.Errorf("%s: %v", what, err)
		}
		if f.exists(t, p.SessionID) {
			t.Errorf("%s: there is a session", what)
		}
	}
	missing := func(err error) bool { return errors.Is(err, persistence.ErrNotFound) }
	early := protocol.SessionStart{Kind: protocol.StartSnapshot, Snapshot: "early"}
	fails("a snapshot that is not there", plugin.NewSession(protocol.SessionStart{Kind: protocol.StartSnapshot, Snapshot: "late"}), missing)
	fails("a session that is not there", plugin.NewSession(protocol.SessionStart{Kind: protocol.StartExisting, SessionID: "ses_none"}), missing)
	fails("a parent that is not there", &protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: "ses_none"}}, missing)
	f.keeper.change(func() { f.keeper.refuses = errors.New("no") })
	fails("state that a plugin refuses", &protocol.SessionNewParams{Start: early}, func(err error) bool { return errors.As(err, new(*plugin.HookError)) })
	f.keeper.change(func() { f.keeper.refuses = nil })
	fails("nodes that cannot be", &protocol.SessionNewParams{Nodes: make([]protocol.NodeBody, 1)}, func(err error) bool { return errors.As(err, new(*param.Error)) })
	row := f.create(t, &protocol.SessionNewParams{SessionID: "ses_new", Start: early})
	if got := f.held(t, row.ID, "keeper").Text; got != "then" {
		t.Errorf("with the same id later: kept %q", got)
	}
}

func refusedBirths(t *testing.T) {
	f := born(t)
	nobody := protocol.SessionID("ses_x")
	for _, c := range []struct {
		pointer string
		p       protocol.SessionNewParams
	}{
		{"/start/kind", protocol.SessionNewParams{Start: protocol.SessionStart{Kind: "there"}}},
		{"/start/sessionId", protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartExisting}}},
		{"/start/sessionId", protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartEmpty, SessionID: nobody}}},
		{"/start/snapshot", protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: f.id, Snapshot: "s"}}},
		{"/start/snapshot", protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartSnapshot}}},
		{"/pluginSource", protocol.SessionNewParams{PluginSource: "mixed"}},
		{"/relation/kind", protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationFork}}},
		{"/relation/kind", protocol.SessionNewParams{Relation: protocol.Relation{Parent: f.id}}},
		{"/relation/parent", protocol.SessionNewParams{Relation: protocol.Relation{Parent: f.other}, Authority: protocol.Authority{Subagent: &protocol.Subagent{Parent: f.id, Depth: 1, MaxDepth: 1}}}},
		{"/relation/source", protocol.SessionNewParams{Relation: protocol.Relation{Source: &protocol.ForkSource{}}}},
		{"/usageLabel", protocol.SessionNewParams{UsageLabel: "mine"}},
		{"/firstTurnInput/0/text", protocol.SessionNewParams{FirstTurnInput: text("")}},
		{"/driver", protocol.SessionNewParams{Driver: "other", Start: protocol.SessionStart{Kind: protocol.StartCurrent}}},
		{"/cwd", protocol.SessionNewParams{Cwd: "here"}},
	} {
		_, err := f.host.Lifecycle.CreateSession(t.Context(), &c.p)
		if p, ok := errors.AsType[*param.Error](err); !ok || p.Pointer != c.pointer {
			t.Errorf("%+v: %v, want an error at %s", c.p, err, c.pointer)
		}
	}
	_, err := f.Sessions.New(t.Context(), &protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartCurrent}})
	if p, ok := errors.AsType[*param.Error](err); !ok || p.Pointer != "/start/kind" {
		t.Errorf("a client's current session: %v", err)
	}
}

func TestFirstTurnInput(t *testing.T) {
	taken := func(f *family, id protocol.SessionID) (string, bool) {
		t.Helper()
		input, ok, err := f.host.Lifecycle.TakeFirstTurnInput(t.Context(), id)
		if err != nil || ok != (len(input) == 1) {
			t.Errorf("%+v %t %v", input, ok, err)
		}
		if !ok {
			return "", false
		}
		return input[0].Text, true
	}
	t.Run("plugin/HC-05 the first caller takes the first turn input, once, also after a restart", func(t *testing.T) {
		f := born(t)
		p := &protocol.SessionNewParams{FirstTurnInput: text("find the bug")}
		kept, raced := f.create(t, p).ID, f.create(t, p).ID
		fork := f.fork(t, kept, "").SessionID
		wins := make(chan bool)
		for range 4 {
			go func() { _, ok := taken(f, raced); wins <- ok }()
		}
		won := 0
		for range 4 {
			if <-wins {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d of four have taken it", won)
		}
		f = lentAgain(t, f.daemon)
		for _, c := range []struct {
			id   protocol.SessionID
			want string
		}{{fork, ""}, {kept, "find the bug"}, {kept, ""}, {raced, ""}, {"ses_none", ""}} {
			if got, ok := taken(f, c.id); got != c.want || ok != (c.want != "") {
				t.Errorf("%s: took %q, want %q", c.id, got, c.want)
			}
		}
	})
	t.Run("plugin/HC-05 the first turn input is deleted with its session", func(t *testing.T) {
		f := born(t)
		id := f.create(t, &protocol.SessionNewParams{FirstTurnInput: text("find the bug")}).ID
		must[*protocol.SeqResult](t)(f.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		if got, ok := taken(f, id); ok {
			t.Errorf("took %q of a session that is gone", got)
		}
	})
}

// lentAgain restarts a daemon with a plugin that exposes its services.
func lentAgain(t *testing.T, d *daemon) *family {
	t.Helper()
	f := &family{}
	lender := hooked{"lender", func(r *plugin.Registrar) {
		r.Context().Transform(0, func(_ context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			f.host = v.Host
			return pc, nil
		})
	}}
	f.daemon = d.restart(t, func(s *setup) { s.plugins = append(slices.Clip(s.plugins), lender) })
	f.id = f.session(t)
	f.turn(t, f.id, "go")
	return f
}
