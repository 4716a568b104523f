package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// vault is a provider that lists nothing, and makes calls which a grant allows.
type vault struct {
	notes
	with func(name string) toolFunc // what runs a call; nil: it is noted
}

func (*vault) Tools() []tool.Tool { return nil }

func (*vault) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	panic("it lists no tools")
}

func (v *vault) ExecuteGranted(ctx context.Context, call tool.Invocation, binding json.RawMessage) (tool.Result, error) {
	if v.with != nil {
		return v.with(call.Name).Execute(ctx, call)
	}
	v.add(call.Name + " " + string(call.Args) + " " + string(binding))
	return tool.Result{Output: protocol.Succeed("opened")}, nil
}

func granted(source, name string) *tool.Grant {
	return &tool.Grant{
		Source: source, Binding: json.RawMessage(`{"key":7}`),
		Manifest: protocol.ToolManifest{Name: name, Kind: protocol.ToolKindRead},
		Contract: protocol.ToolContract{Replay: map[string]protocol.Replay{"vault-safe": protocol.ReplaySafe}[name]},
	}
}

// making is a tool that makes calls by grants, and says what they came to.
func making(names ...string) toolFunc {
	return toolFunc{name: "maker", contract: protocol.ToolContract{Serial: true, Replay: protocol.ReplaySafe}, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
		var all []tool.Request
		for _, name := range names {
			all = append(all, tool.Request{Args: json.RawMessage(`{"x":1}`), Grant: granted("test-tools", name)})
		}
		out, err := c.Host.Call(ctx, all)
		if err != nil {
			return tool.Result{}, err
		}
		var text strings.Builder
		for _, o := range out {
			text.WriteString(o.Text + " ")
		}
		return tool.Result{Output: protocol.Succeed(text.String())}, nil
	}}
}

func TestGrantedCalls(t *testing.T) {
	setUp := func(v *vault, more ...hooked) setup {
		return setup{model: replies(calls("maker"), scripted.Reply{Text: "done"}), tools: []tool.Provider{making("secret"), v}, plugins: plugins(more...)}
	}
	t.Run("plugin/TL-12 a granted call runs the hooks, is recorded, and does not change the session's tools", func(t *testing.T) {
		v, seen := &vault{}, &notes{}
		d := start(t, setUp(v, hooked{"see", func(r *plugin.Registrar) {
			r.ToolCalls().Before(func(_ context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
				seen.add(c.Tool + " " + string(c.Parent))
				return nil, nil
			})
		}}))
		id := d.session(t)
		state := func() string {
			res := must[*protocol.ToolStateResult](t)(d.Tools.State(t.Context(), &protocol.SessionParams{SessionID: id}))
			text, _ := json.Marshal(res.State)
			return string(text)
		}
		before := state()
		report := d.turn(t, id, "go")
		if len(report.ToolCalls) != 2 || report.ToolCalls[0].Output.Text != "opened " || report.ToolCalls[1].Name != "secret" || report.ToolCalls[1].Parent != "c1" {
			t.Errorf("the turn came to %+v", report.ToolCalls)
		}
		if got := v.all(); len(got) != 1 || got[0] != `secret {"x":1} {"key":7}` {
			t.Errorf("the vault was asked %q", got)
		}
		if got := seen.all(); len(got) != 2 || got[1] != "secret c1" {
			t.Errorf("hooks saw %q", got)
		}
		if after := state(); after != before {
			t.Errorf("tool state %s, was %s", after, before)
		}
	})
	t.Run("plugin/TL-12 a grant cannot allow hidden, excluded or unknown tools", func(t *testing.T) {
		for name, c := range map[string]struct {
			authority protocol.Authority
			tools     []tool.Provider
		}{
			"hidden":   {protocol.Authority{Hidden: []string{"secret"}}, []tool.Provider{making("secret"), &vault{}}},
			"others":   {protocol.Authority{Tools: []string{"maker"}}, []tool.Provider{making("secret"), &vault{}}},
			"no taker": {protocol.Authority{}, []tool.Provider{making("secret")}},
		} {
			d := start(t, setup{model: replies(calls("maker"), scripted.Reply{Text: "done"}), tools: c.tools})
			res := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Authority: c.authority}))
			report := d.turn(t, res.SessionID, "go")
			if f := report.ToolCalls[1].Output.Failure; f == nil || f.Code != tool.CodeUnavailable || report.State != protocol.TurnCompleted {
				t.Errorf("%s: %+v", name, report.ToolCalls)
			}
		}
	})
	t.Run("plugin/TL-12 the same call under another grant is another call", func(t *testing.T) {
		v, tries := &vault{}, 0
		again := toolFunc{name: "maker", contract: protocol.ToolContract{Serial: true, Replay: protocol.ReplaySafe, Retry: &protocol.ToolRetry{Attempts: 3}}}
		again.run = func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			tries++
			g := granted("test-tools", "secret")
			if tries == 3 {
				g.Binding = json.RawMessage(`{"key":8}`)
			}
			if _, err := c.Host.Call(ctx, []tool.Request{{Grant: g}}); err != nil {
				return tool.Result{}, err
			}
			out := protocol.Fail(protocol.FailIO, "io", "again", protocol.FromTool)
			out.Failure.Retry = true
			return tool.Result{Output: out}, nil
		}
		d := start(t, setup{model: replies(calls("maker"), scripted.Reply{Text: "done"}), tools: []tool.Provider{again, v}})
		report := d.turn(t, d.session(t), "go")
		if got := v.all(); len(got) != 1 || tries != 3 || !strings.Contains(report.ToolCalls[0].Output.Text, "does not match the journal") {
			t.Errorf("after %d tries the vault was asked %q: %+v", tries, got, report.ToolCalls[0].Output)
		}
	})
	t.Run("plugin/TL-12 runtime/P11 killed after one granted call returned and another started", func(t *testing.T) {
		dir := t.TempDir()
		kill(t, dir, grantStarted)
		s := crashSetup(dir, grantStarted, nil)
		s.dir = filepath.Join(dir, "store")
		d := start(t, s)
		turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: victimSession})).Data
		report := d.wait(t, turns[0].TurnID)
		if got := report.ToolCalls[0].Output.Text; got != "once again " || report.Outcome.Text != "done" {
			t.Errorf("the calls came to %q, the turn to %+v", got, report.Outcome)
		}
		if never, safe := counted(dir, "never"), counted(dir, "safe-c1-1"); never != 1 || safe != 2 {
			t.Errorf("the call that must not be repeated ran %d times, the other %d", never, safe)
		}
	})
}
