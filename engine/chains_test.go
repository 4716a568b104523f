package engine_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lashd/engine/authority"
	"lashd/engine/builtin/plan"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// grown is a session of a chain, with what those who stand behind it said of the tool run when they asked, and whether one was in a sandbox or in plan mode.
type grown struct {
	id      protocol.SessionID
	said    []protocol.ApprovalMode
	sandbox bool
	plans   bool   // one of them was in plan mode
	by      *grown // that asked for it; nil: a person did
}

// freedom orders what became of a call: the laxest first.
var freedom = []string{"ran", "asked", "denied", "plan_mode"}

// became returns the outcome of a call for a verdict if no question is ever answered.
func became(verdict protocol.ApprovalMode) string {
	return map[protocol.ApprovalMode]string{protocol.ApproveAllow: "ran", protocol.ApproveAsk: "asked", protocol.ApproveDeny: "denied"}[verdict]
}

// called is what the call of a turn came to.
func called(r *protocol.TurnReport) string {
	out := r.ToolCalls[0].Output
	switch {
	case out.Failure == nil:
		return out.Text
	case strings.Contains(out.Failure.Message, "deadline"):
		return "asked"
	}
	return out.Failure.Code
}

func about(mode protocol.ApprovalMode) *protocol.ApprovalConfig {
	return &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, DeadlineMs: 1, Rules: []protocol.ApprovalRule{{Tool: "run", Action: mode}}}
}

// TestAuthorityChains grows chains of sessions and turns that ask for each other over the real engine, while a person configures them, and
// has the tool called at the end of each.
func TestAuthorityChains(t *testing.T) {
	modes := rapid.SampledFrom([]protocol.ApprovalMode{protocol.ApproveAllow, protocol.ApproveDeny, protocol.ApproveAsk})
	t.Run("outside/1 the last session of a chain may do no more than any before it", func(t *testing.T) {
		calling := scripted.Turn{Match: &scripted.Match{LastUserContains: "run"}, Replies: []scripted.Reply{calls("run"), {Text: "done"}}}
		d := start(t, setup{
			cwd: t.TempDir(), tools: []tool.Provider{says("run", "ran")}, plugins: append(plugins(handling("p", nil)), plan.Factory{}),
			model: scripted.New(&scripted.Script{Turns: slices.Repeat([]scripted.Turn{calling}, 10_000), Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}}),
		})
		rapid.Check(t, func(rt *rapid.T) {
			now, plans := map[protocol.SessionID]protocol.ApprovalMode{}, map[protocol.SessionID]bool{}
			mode := func() protocol.PluginOptions {
				return rapid.SampledFrom([]protocol.PluginOptions{acting, acting, acting, planning}).Draw(rt, "options")
			}
			configure := func(id protocol.SessionID) {
				p := &protocol.SessionConfigureParams{SessionID: id, Options: mode()}
				now[id], plans[id] = modes.Draw(rt, "mode"), reflect.DeepEqual(p.Options, planning)
				p.Approval = about(now[id])
				must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), p))
			}
			all := []*grown{{id: d.session(t)}, {id: d.session(t)}}
			for _, root := range all {
				configure(root.id)
			}
			for range rapid.IntRange(1, 6).Draw(rt, "steps") {
				from := all[rapid.IntRange(0, len(all)-1).Draw(rt, "from")]
				ctx, sandbox := t.Context(), rapid.IntRange(0, 3).Draw(rt, "sandbox") == 0
				if sandbox {
					ctx = authority.FromSandbox(ctx)
				}
				behind := &grown{said: append(slices.Clip(from.said), now[from.id]), sandbox: from.sandbox || sandbox, plans: from.plans || plans[from.id], by: from}
				switch rapid.SampledFrom([]string{"turn", "create", "turn", "fork", "configure"}).Draw(rt, "op") {
				case "create":
					says := modes.Draw(rt, "of")
					p := &protocol.SessionNewParams{Approval: about(says), Options: mode()}
					if rapid.Bool().Draw(rt, "child") {
						p.Relation.Kind = protocol.RelationChild
					}
					behind.id = must[*protocol.SessionNewResult](t)(d.host(t, from.id).Lifecycle.CreateSession(ctx, p)).SessionID
					now[behind.id], plans[behind.id] = says, reflect.DeepEqual(p.Options, planning)
					all = append(all, behind)
				case "fork":
					f := &grown{d.fork(t, from.id, "").SessionID, from.said, from.sandbox, from.plans, nil}
					now[f.id], plans[f.id] = now[from.id], plans[from.id]
					all = append(all, f)
				case "turn":
					others := slices.DeleteFunc(slices.Clone(all), func(g *grown) bool { return g == from })
					to := rapid.SampledFrom(others).Draw(rt, "to")
					mine := true
					if rapid.Bool().Draw(rt, "loaded") { // the plugin does not ship with lashd
						ctx, mine = authority.FromLoaded(ctx), slices.Contains(to.askers(), from)
					}
					turn, err := d.host(t, from.id).Lifecycle.StartTurn(ctx, &plugin.TurnRequest{TurnID: protocol.NewTurnID(), SessionID: to.id, Input: text("run")})
					if out := errors.As(err, new(*plugin.ReachError)); out == mine || !out && err != nil {
						rt.Fatalf("a turn in %s, asked for by %s: %v, want it to be there: %t", to.id, from.id, err, mine)
					}
					if err != nil {
						continue
					}
					within(rt, called(d.wait(t, turn)), now[to.id], plans[to.id], behind, to)
				case "configure":
					configure(from.id)
				}
			}
			for _, s := range all {
				within(rt, called(d.turn(t, s.id, "run")), now[s.id], plans[s.id], s)
			}
		})
	})
}

// askers are those who asked for a session, for them, and so on.
func (g *grown) askers() (all []*grown) {
	for by := g.by; by != nil; by = by.by {
		all = append(all, by)
	}
	return all
}

// within fails if a call came to more than the session, or anybody behind it, may do.
func within(t *rapid.T, got string, own protocol.ApprovalMode, plans bool, behind ...*grown) {
	want := []string{became(own)}
	if plans {
		want = append(want, "plan_mode")
	}
	for _, b := range behind {
		for _, mode := range b.said {
			want = append(want, became(mode))
		}
		if b.sandbox {
			want = append(want, "asked")
		}
		if b.plans {
			want = append(want, "plan_mode")
		}
	}
	for _, w := range want {
		if slices.Index(freedom, got) < slices.Index(freedom, w) {
			t.Fatalf("the call came to %q; those behind it come to %q", got, want)
		}
	}
}

func TestCellsOfRequesters(t *testing.T) {
	for name, c := range map[string]*protocol.Ceiling{
		"nobody":                         nil,
		"a session of another driver":    {Policies: []protocol.Policy{{Driver: "another"}}},
		"a plugin in a sandbox":          {Sandboxed: true},
		"a session that has no tools":    {NoTools: true},
		"a plugin in a sandbox, in one":  {Sandboxed: true},
		"a session in plan mode":         {ReadOnly: true},
		"a session of another workspace": {Roots: []string{"/nowhere"}},
	} {
		t.Run("outside/1 code cells requested by "+name, func(t *testing.T) {
			w := &words{}
			s, runs := coded(w), c == nil || name == "a plugin in a sandbox, in one"
			if runs && c != nil {
				s.driver = boxedScheme{s.driver.(scheme)}
			}
			d := start(t, s)
			p := &protocol.SessionNewParams{Cwd: t.TempDir(), Authority: protocol.Authority{Ceiling: c}}
			made, err := d.Sessions.New(t.Context(), p)
			if c != nil && len(c.Roots) > 0 {
				if err == nil {
					t.Error("there is such a session")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d.turn(t, made.SessionID, "run one")
			if got := w.all(); (len(got) > 0) != runs {
				t.Errorf("%q ran", got)
			}
		})
	}
}

// boxedScheme is a driver of a plugin that does not ship with lashd, and whose programs are all in a sandbox.
type boxedScheme struct{ scheme }

func (boxedScheme) Sandboxed() bool { return true }
