package plugin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func TestReinspection(t *testing.T) {
	two := []plugin.Directive{plugin.ReplaceArgs(raw(`2`))}
	second := protocol.Succeed("2")
	changed := []plugin.Directive{plugin.ShortCircuit(second)}
	on := func(id, what string, ds ...plugin.Directive) policy {
		return policy{id, map[string][]plugin.Directive{what: ds}}
	}
	for name, c := range map[string]struct {
		seam plugin.Hook
		by   []policy
		seen string
		want string
		args string
	}{
		"HK-04 later hooks see new arguments": {beforeTool, []policy{always("a", two...), always("b")}, "a 1, b 2", "run", "2"},
		"HK-04 the later of two replacements is used": {beforeTool,
			[]policy{on("a", "1", two...), on("b", "2", plugin.ReplaceArgs(raw(`3`)))}, "a 1, b 2, a 3", "run", "3"},
		"HK-11 earlier hooks see new arguments once": {beforeTool,
			[]policy{always("a"), always("b"), on("c", "1", two...)}, "a 1, b 1, c 1, a 2, b 2", "run", "2"},
		"HK-11 earlier hooks may reject new arguments": {beforeTool,
			[]policy{on("a", "2", deny("x")), on("b", "1", two...)}, "a 1, b 1, a 2", "a denies x", "2"},
		"HK-11 earlier hooks may ask a person about new arguments": {beforeTool,
			[]policy{on("a", "2", ask), on("b", "1", two...)}, "a 1, b 1, a 2", "a asks why", "2"},
		"HK-11 earlier hooks cannot allow new arguments": {beforeTool,
			[]policy{on("a", "2", allow), on("b", "1", two...)}, "a 1, b 1, a 2", "run", "2"},
		"HK-11 earlier hooks cannot replace new arguments": {beforeTool,
			[]policy{on("a", "2", plugin.ReplaceArgs(raw(`3`))), on("b", "1", two...), always("c", create)}, "a 1, b 1, a 2", "a denies before_tool_call_failed", ""},
		"HK-11 a denial stays in force for new arguments": {beforeTool,
			[]policy{on("a", "1", deny("x")), on("b", "1", two...)}, "a 1, b 1, a 2", "a denies x", "2"},
		"HK-11 all hooks see a new result": {afterTool,
			[]policy{always("a"), on("b", "1", changed...), always("c")}, "a 1, b 1, a 2, c 2", "b gives 2", ""},
		"HK-11 a new result may be rejected": {afterTool,
			[]policy{on("a", "2", deny("x")), on("b", "1", changed...)}, "a 1, b 1, a 2", "a denies x", ""},
		"HK-11 hooks that saw the old result cannot replace the new one": {afterTool,
			[]policy{on("a", "2", allow), on("b", "1", changed...)}, "a 1, b 1, a 2", "a denies after_tool_call_failed", ""},
		"HK-11 the first new result stays": {afterTool,
			[]policy{on("a", "1", changed...), always("b", allow), always("c")}, "a 1, b 2, c 2", "a gives 2", ""},
	} {
		t.Run("runtime/T23 plugin/"+name, func(t *testing.T) {
			v, seen := judge(t, c.seam, c.by...)
			if got := strings.Join(seen, ", "); got != c.seen || verdict(v) != c.want || string(v.Args) != c.args {
				t.Errorf("seen %s, want %s; verdict %s, want %s; args %s, want %s", got, c.seen, verdict(v), c.want, v.Args, c.args)
			}
		})
	}
	t.Run("runtime/T23 plugin/HK-11 the error has a type and names both plugins", func(t *testing.T) {
		v, _ := judge(t, beforeTool, on("a", "2", two...), on("b", "1", two...))
		if want := "plugin a: before_tool_call: plugin a replaces a value that plugin b just replaced"; v.Output.Text != want {
			t.Errorf("%s, want %s", v.Output.Text, want)
		}
	})
	t.Run("runtime/T23 plugin/HK-11 effects happen once", func(t *testing.T) {
		v, _ := judge(t, beforeTool, always("a", create, plugin.TraceWith("n", nil), plugin.Tell()), on("b", "1", two...))
		if diff := cmp.Diff([]string{"a create_session", "a emit_trace", "a emit_runtime_events"}, ids(v.Effects)); diff != "" {
			t.Error(diff)
		}
	})
}
