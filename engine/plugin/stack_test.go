package plugin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
)

type extending struct{ plugin.Factory }

func (extending) Extensions() []plugin.Extension {
	return []plugin.Extension{{ID: "e", Payload: raw(`true`)}}
}

func TestStack(t *testing.T) {
	stack := func(ids ...string) plugin.Stack {
		var s plugin.Stack
		for _, id := range ids {
			s.Push(driver(id))
		}
		return s
	}
	for name, c := range map[string]struct {
		change func(*plugin.Stack)
		want   string
	}{
		"push":               {func(s *plugin.Stack) { s.Push(driver("x")) }, "a b c x"},
		"extend":             {func(s *plugin.Stack) { s.Extend(driver("x"), driver("y")) }, "a b c x y"},
		"remove":             {func(s *plugin.Stack) { s.Remove("b") }, "a c"},
		"remove none":        {func(s *plugin.Stack) { s.Remove("x") }, "a b c"},
		"replace in place":   {func(s *plugin.Stack) { s.Replace(driver("b")) }, "a b c"},
		"replace, else push": {func(s *plugin.Stack) { s.Replace(driver("x")) }, "a b c x"},
		"retain":             {func(s *plugin.Stack) { s.Retain(func(f plugin.Factory) bool { return f.ID() != "a" }) }, "b c"},
	} {
		t.Run("plugin/PH-12 "+name+" keeps the order", func(t *testing.T) {
			s := stack("a", "b", "c")
			before := s
			c.change(&s)
			if got := strings.Join(s.IDs(), " "); got != c.want || strings.Join(before.IDs(), " ") != "a b c" {
				t.Errorf("%s from %q, want %s", got, before.IDs(), c.want)
			}
		})
	}
	t.Run("plugin/PH-12 Replace keeps the new factory, and Remove reports whether there was one", func(t *testing.T) {
		s := stack("a")
		before := s
		s.Replace(extending{driver("a")})
		_, replaced := s[0].(extending)
		if _, both := before[0].(extending); !replaced || both {
			t.Errorf("replaced: %v, also in the list before: %v", replaced, both)
		}
		if !s.Remove("a") || s.Remove("a") {
			t.Error("remove")
		}
	})
	t.Run("plugin/PH-12 a static plugin and a builder contribute the same", func(t *testing.T) {
		spec := func(r *plugin.Registrar) error {
			r.Tools().Add(tools{"look"})
			return nil
		}
		built := plugin.Builder("p", func(plugin.BuildContext) (plugin.Spec, error) { return spec, nil })
		if diff := cmp.Diff(open(t, plugin.Static("p", spec)).Sources(), open(t, built).Sources()); diff != "" {
			t.Error(diff)
		}
		if got := refused(t, plugin.Builder("p", func(plugin.BuildContext) (plugin.Spec, error) { return nil, nil })); got != "plugin p: Build returned no plugin" {
			t.Errorf("a builder that gives nothing: %s", got)
		}
	})
}
