package starlark_test

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"lashd/engine/starlark"
)

// FuzzDecode restores damaged state: a cell that uses it must end, and what it can read must encode again to something that
// reads the same.
func FuzzDecode(f *testing.F) {
	in := starlark.New(starlark.Config{})
	in.Bind(someTools())
	in.Execute(f.Context(), &starlark.Cell{Source: `a = [1, -5, 1 << 80, 1.5, "s", b"b", None, True, (1, 2), {"k": [1]}, set([1]), range(3), struct(a=1), len, json, tools.t]
b = [a, a[9]]
def c(x, y=a): return lambda z=1: [x, y, z]
d = c(1)
e = [].append`}, echoing())
	state := in.Snapshot()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		f.Add(state[name], state["b"])
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		limits := starlark.Limits{Steps: 100_000, Time: 2 * time.Second, Memory: 1 << 30}
		in := starlark.New(starlark.Config{Limits: limits})
		in.Bind(someTools())
		if in.Restore(map[string][]byte{"a": bytes.Clone(a), "b": bytes.Clone(b)}) != nil {
			return
		}
		const show = "[str(a)[:1000], str(b)[:1000], type(a), type(b)]"
		first := in.Execute(t.Context(), &starlark.Cell{Source: show}, echoing())
		if first.Error != "" || len(first.Unsaved) > 0 {
			return
		}
		stored := map[string][]byte{"a": a, "b": b}
		maps.Copy(stored, in.Snapshot())
		again := starlark.New(starlark.Config{Limits: limits})
		again.Bind(someTools())
		if err := again.Restore(stored); err != nil {
			t.Fatal(err)
		}
		second := again.Execute(t.Context(), &starlark.Cell{Source: show}, echoing())
		if string(second.Value) != string(first.Value) || len(second.Changed) > 0 {
			t.Errorf("first %s, then %s, error %s, changed %q", first.Value, second.Value, second.Error, second.Changed)
		}
	})
}

// FuzzCell runs any text as a cell, and then again after a restart of its state: neither may panic, and the state that was saved must
// be readable.
func FuzzCell(f *testing.F) {
	for _, source := range []string{
		"x = 1\ny = [x for x in [1] if x]\nx += 2", "def f(a, *b, c=1, **d):\n  return lambda: a\ng = f(1)\nz = g()",
		"for i, (j, k) in [(1, (2, 3))]: pass\nwhile False: pass\nif True:\n  a = {1: 2}[1]\nelse:\n  b = 'x'.join(['a'])\n\"%s\" % 1",
		"x = (lambda q=1: q[0:1], lambda: (1, 2))\n_ = {k: v for k, v in {}.items()}\nparallel([tools.t.later(a=1)])", "a.b = 1", "[x, y] = (1, 2)\nf(x=1)", "x = y = 1",
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		limits := starlark.Limits{Steps: 20_000, Time: 2 * time.Second, Memory: 1 << 30}
		in := starlark.New(starlark.Config{Limits: limits})
		in.Bind(someTools())
		r := in.Execute(t.Context(), &starlark.Cell{Source: source, AcceptFinish: true}, echoing())
		if bytes.Contains([]byte(r.Error), []byte("internal error")) {
			t.Fatal(r.Error)
		}
		again := starlark.New(starlark.Config{Limits: limits})
		again.Bind(someTools())
		if err := again.Restore(in.Snapshot()); err != nil {
			t.Fatal(err)
		}
		for _, g := range again.Globals() {
			used := again.Execute(t.Context(), &starlark.Cell{Source: g.Name + "\n0"}, echoing())
			if bytes.Contains([]byte(used.Error), []byte("cannot be read")) || len(used.Changed) > 0 {
				t.Errorf("%s: %s, changed %q", g.Name, used.Error, used.Changed)
			}
		}
	})
}
