package plugin_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// policy is a plugin that decides on calls by their arguments and on results by their text.
type policy struct {
	id string
	on map[string][]plugin.Directive
}

func always(id string, ds ...plugin.Directive) policy {
	return policy{id, map[string][]plugin.Directive{"": ds}}
}

// factory also records the arguments of the hooks.
func (p policy) factory(seen *[]string) plugin.Factory {
	see := func(what string) ([]plugin.Directive, error) {
		*seen = append(*seen, p.id+" "+what)
		if ds, ok := p.on[what]; ok {
			return ds, nil
		}
		return p.on[""], nil
	}
	return with(p.id, func(r *plugin.Registrar) {
		r.ToolCalls().Before(func(_ context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
			return see(string(tc.Args))
		})
		r.ToolResults().After(func(_ context.Context, tc *plugin.ToolResultContext) ([]plugin.Directive, error) {
			return see(tc.Output.Text)
		})
	})
}

func deny(code string) plugin.Directive {
	return plugin.ShortCircuit(protocol.Fail(protocol.FailPermission, code, "no", protocol.FromPolicy))
}

var (
	allow  = plugin.ShortCircuit(protocol.Succeed("allowed"))
	cancel = plugin.ShortCircuit(protocol.ToolOutput{Status: protocol.OutputCancelled})
	stop   = plugin.Abort("stop", "stop it")
	ask    = plugin.AskFirst("why")
)

// verdict formats a ToolVerdict in one line: the plugin, and the code or text of the output or the reason of the approval.
func verdict(v *plugin.ToolVerdict) string {
	switch {
	case v.Approval != nil:
		return v.Plugin + " asks " + v.Approval.Reason
	case v.Output == nil:
		return "run"
	case v.Denied && v.Output.Failure != nil:
		return v.Plugin + " denies " + v.Output.Failure.Code
	case v.Denied:
		return v.Plugin + " denies " + string(v.Output.Status)
	default:
		return v.Plugin + " gives " + v.Output.Text
	}
}

func judge(t *testing.T, seam plugin.Hook, policies ...policy) (v *plugin.ToolVerdict, seen []string) {
	t.Helper()
	var factories []plugin.Factory
	for _, p := range policies {
		factories = append(factories, p.factory(&seen))
	}
	s := open(t, factories...)
	call := plugin.ToolCallContext{Tool: "look", Args: raw(`1`)}
	v, err := s.BeforeToolCall(t.Context(), &call)
	if seam == plugin.HookAfterTool {
		seen = nil
		v, err = s.AfterToolCall(t.Context(), &plugin.ToolResultContext{ToolCallContext: call, Output: protocol.Succeed("1")})
	}
	if err != nil {
		t.Fatal(err)
	}
	return v, seen
}

const (
	beforeTool = plugin.HookBeforeTool
	afterTool  = plugin.HookAfterTool
)

func TestTerminals(t *testing.T) {
	for _, c := range []struct {
		row  string
		seam plugin.Hook
		by   []policy
		want string
	}{
		{"HK-05", beforeTool, []policy{always("a"), always("b")}, "run"},
		{"HK-05", beforeTool, []policy{always("a", allow)}, "a gives allowed"},
		{"HK-10", beforeTool, []policy{always("a", deny("x")), always("b", allow)}, "a denies x"},
		{"HK-10", beforeTool, []policy{always("a", allow), always("b", deny("x"))}, "b denies x"},
		{"HK-10", beforeTool, []policy{always("a", cancel), always("b", allow)}, "a denies cancelled"},
		{"HK-10", beforeTool, []policy{always("a", allow), always("b", ask)}, "b asks why"},
		{"HK-10", beforeTool, []policy{always("a", ask), always("b", allow)}, "a asks why"},
		{"HK-10", beforeTool, []policy{always("a", ask), always("b", deny("x"))}, "b denies x"},
		{"HK-10", beforeTool, []policy{always("a", deny("x")), always("b", ask)}, "a denies x"},
		{"HK-10", beforeTool, []policy{always("b", deny("x")), always("a", deny("y"))}, "a denies y"},
		{"HK-10", beforeTool, []policy{always("a", deny("x"), deny("y"))}, "a denies x"},
		{"HK-10", beforeTool, []policy{always("a", stop), always("b", deny("x"))}, "a denies stop"},
		{"S-02", beforeTool, []policy{always("a", deny("x")), always("b", stop)}, "b denies x"},
		{"S-02", beforeTool, []policy{always("c", deny("x")), always("b", stop), always("a", stop)}, "a denies x"},
		{"HK-06", beforeTool, []policy{always("a", stop)}, "a denies stop"},
		{"HK-06", afterTool, []policy{always("a", stop)}, "a denies stop"},
		{"HK-10", afterTool, []policy{always("a")}, "run"},
		{"HK-10", afterTool, []policy{always("a", deny("x")), always("b", allow)}, "a denies x"},
		{"HK-10", afterTool, []policy{policy{"a", map[string][]plugin.Directive{"1": {allow}}}, always("b", deny("x"))}, "b denies x"},
		{"HK-10", afterTool, []policy{always("b", deny("x")), always("a", deny("y"))}, "b denies x"},
		{"S-02", afterTool, []policy{always("b", deny("x")), always("a", stop)}, "a denies x"},
		{"HK-07", beforeTool, []policy{always("a", plugin.Enqueue())}, "a denies before_tool_call_failed"},
		{"HK-07", beforeTool, []policy{always("a", plugin.Directive{Kind: plugin.ShortCircuitTool})}, "a denies before_tool_call_failed"},
		{"HK-07", afterTool, []policy{always("a", plugin.ReplaceArgs(raw(`2`)))}, "a denies after_tool_call_failed"},
		{"HK-07", afterTool, []policy{always("a", ask), always("b", stop)}, "b denies after_tool_call_failed"},
	} {
		t.Run("runtime/T23 plugin/"+c.row+" "+string(c.seam)+": "+c.want, func(t *testing.T) {
			v, _ := judge(t, c.seam, c.by...)
			if got := verdict(v); got != c.want {
				t.Errorf("%+v: %s, want %s", c.by, got, c.want)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	t.Run("runtime/T23 plugin/HK-12 an overridden directive is recorded as a conflict, except with the same plugin", func(t *testing.T) {
		v, _ := judge(t, beforeTool, always("a", deny("x"), deny("y")), always("b", allow), always("c", stop))
		want := []plugin.Conflict{
			{Hook: beforeTool, Later: "b", Winner: "a", WinnerKind: plugin.ShortCircuitTool, Loser: "b", LoserKind: plugin.ShortCircuitTool},
			{Hook: beforeTool, Later: "c", Winner: "c", WinnerKind: plugin.AbortTurn, Loser: "a", LoserKind: plugin.ShortCircuitTool},
		}
		if diff := cmp.Diff(want, v.Conflicts); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("runtime/T23 plugin/HK-12 a repeated conflict is recorded once", func(t *testing.T) {
		first := map[string][]plugin.Directive{"1": {deny("y"), plugin.ReplaceArgs(raw(`2`))}}
		then := map[string][]plugin.Directive{"2": {plugin.ReplaceArgs(raw(`3`))}}
		v, _ := judge(t, beforeTool, always("b", deny("x")), policy{"a", first}, policy{"c", then})
		if len(v.Conflicts) != 2 || v.Conflicts[0].Winner != "a" || v.Conflicts[1].Later != "b" {
			t.Errorf("%+v", v.Conflicts)
		}
	})
	t.Run("plugin/HK-08 messages after a call wait for the checkpoint", func(t *testing.T) {
		v, _ := judge(t, afterTool, always("a", plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Content: "note"})))
		if v.Output != nil || len(v.Messages) != 1 || v.Messages[0].Plugin != "a" || v.Messages[0].Messages[0].Content != "note" {
			t.Errorf("%+v", v)
		}
	})
	for name, fail := range map[string]func() ([]plugin.Directive, error){
		"boom":             func() ([]plugin.Directive, error) { return nil, errBoom },
		"panicked: clumsy": func() ([]plugin.Directive, error) { panic("clumsy") },
	} {
		t.Run("plugin/HK-09 plugin/S-01 a failing hook fails the call, and no directive is applied: "+name, func(t *testing.T) {
			var seen []string
			s := open(t, always("a", create, plugin.Tell()).factory(&seen), with("b", func(r *plugin.Registrar) {
				r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) { return fail() })
				r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) { return fail() })
			}))
			first, err1 := s.BeforeToolCall(t.Context(), &plugin.ToolCallContext{})
			after, err2 := s.AfterToolCall(t.Context(), &plugin.ToolResultContext{})
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if verdict(first) != "b denies before_tool_call_failed" || verdict(after) != "b denies after_tool_call_failed" || first.Effects != nil || after.Effects != nil {
				t.Errorf("%+v, %+v", first, after)
			}
			if want := "plugin b: before_tool_call: " + name; first.Output.Text != want {
				t.Errorf("%s, want %s", first.Output.Text, want)
			}
		})
	}
	t.Run("a call has no verdict after its turn has ended", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errBoom)
		s := open(t, always("a", allow).factory(new([]string)))
		if v, err := s.BeforeToolCall(ctx, &plugin.ToolCallContext{}); v != nil || !errors.Is(err, errBoom) {
			t.Errorf("%v, %v", v, err)
		}
	})
	t.Run("hooks cannot change the call by changing their arguments", func(t *testing.T) {
		var seen []string
		s := open(t, with("a", func(r *plugin.Registrar) {
			r.ToolCalls().Before(func(_ context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
				tc.Args[0] = '9'
				return nil, nil
			})
		}), always("b").factory(&seen))
		args := raw(`1`)
		if _, err := s.BeforeToolCall(t.Context(), &plugin.ToolCallContext{Args: args}); err != nil || string(args) != `1` || seen[0] != "b 1" {
			t.Errorf("args %s, seen %q, %v", args, seen, err)
		}
	})
	if s := open(t); s.HasBeforeToolCall() || s.HasAfterToolCall() {
		t.Error("a session without hooks has hooks")
	}
}
