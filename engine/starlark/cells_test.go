package starlark_test

import (
	"slices"
	"strings"
	"testing"

	"lashd/engine/starlark"
)

func TestCells(t *testing.T) {
	for _, c := range []struct {
		name, value string
		sources     []string
	}{
		{"runtime/R11 a global keeps its value for later cells", `3`, []string{"x = 1", "y = x + 1", "x + y"}},
		{"runtime/R11 a function sees globals that a later cell assigns", `[1,2]`, []string{"x = 1\ndef f(): return x", "a = f()\nx = 2", "[a, f()]"}},
		{"runtime/R11 a function can call one that a later cell defines again", `"new"`, []string{"def g(): return 'old'\ndef f(): return g()", "def g(): return 'new'", "f()"}},
		{"runtime/R11 a global list stays mutable", `[1,2]`, []string{"x = [1]", "x.append(2)", "x"}},
		{"runtime/R11 loops and conditions work at the top level", `[0,1,2,9]`, []string{"out = []\nfor i in range(3):\n  if i < 5:\n    out.append(i)\nn = 9\nwhile n < 10:\n  out.append(n)\n  n += 1", "out"}},
		{"runtime/R11 a name of a comprehension does not become a global", `[2,4]`, []string{"x = 1\ny = [x * 2 for x in [1, 2]]", "y if x == 1 else None"}},
		{"runtime/R11 a parameter hides a global", `7`, []string{"x = 1\ndef f(x, y=x): return x + y", "f(6)"}},
		{"runtime/R11 a local variable hides a global", `[2,1]`, []string{"x = 1\ndef f():\n  x = 2\n  return x", "[f(), x]"}},
		{"runtime/R11 += extends a list in place", `[1,2,3]`, []string{"a = [1]\nb = a\na += [2]\na += (3,)", "b"}},
		{"runtime/R11 += on an element evaluates its index once", `[[5],1]`, []string{"n = [0]\ndef i():\n  n[0] += 1\n  return 0\na = [2]\na[i()] += 3", "[a, n[0]]"}},
		{"runtime/R11 a builtin can be shadowed", `"s"`, []string{"text = 's'", "text"}},
		{"runtime/R11 recursion works", `120`, []string{"def f(n): return 1 if n == 0 else n * f(n - 1)", "f(5)"}},
		{"runtime/R11 sets work", `[1,2]`, []string{"s = set([1, 2, 2])", "list(s)"}},
		{"runtime/R11 numbers are exact", `1267650600228229401496703205376`, []string{"1 << 100"}},
		{"runtime/R11 assignments to several names work", `[2,1,3]`, []string{"a, (b, c) = 1, (2, 3)\na, b = b, a", "[a, b, c]"}},
		{"runtime/R11 closures keep their variables", `[11,12]`, []string{"def adder(n):\n  def add(x): return x + n\n  return add\nf, g = adder(1), adder(2)", "[f(10), g(10)]"}},
		{"runtime/R11 % formats text and computes remainders", `["a-1",2]`, []string{"['%s-%d' % ('a', 1), 5 % 3]"}},
		{"runtime/R11 methods of strings work", `["a,b","x-y",["a","b"],"k=v"]`, []string{"[','.join(['a', 'b']), 'x.y'.replace('.', '-'), 'a b'.split(), '{k}={}'.format('v', k='k')]"}},
		{"runtime/R11 a value without JSON form is shown as text", `"\u003cfunction f\u003e"`, []string{"def f(): pass\nf"}},
		{"runtime/R11 * as a default and as an argument works", `[3,[2,3],{"k":4}]`, []string{"def f(a, *args, **kwargs): return [a + 2, list(args), kwargs]", "f(*[1, 2, 3], **{'k': 4})"}},
		{"runtime/R11 lambdas and conditions work", `[1,4]`, []string{"[(lambda x: x * x)(n) if n else n for n in [1, 2]]"}},
	} {
		t.Run(c.name, func(t *testing.T) { wants(t, cells(t, c.sources...), c.value) })
	}
	t.Run("runtime/R11 print collects output, and None has no value", func(t *testing.T) {
		r := cells(t, "print('a', 1, sep='-')\nprint([None, 'x'])")
		if r.Printed != "a-1\n[None, \"x\"]\n" || r.Value != nil {
			t.Errorf("printed %q, value %s", r.Printed, r.Value)
		}
	})
	t.Run("runtime/R11 an error keeps what was assigned before it", func(t *testing.T) {
		in := starlark.New(starlark.Config{})
		fails(t, runs(t, in, "x = 1", "x = 2\nfail('no')"), "no")
		wants(t, runs(t, in, "x"), "2")
	})
	t.Run("runtime/R11 a reply names the globals that changed", func(t *testing.T) {
		in := starlark.New(starlark.Config{})
		r := runs(t, in, "a, b, c = 1, [], 3", "a = 1\nb.append(1)\nd = 4\n_ = 5\nc")
		if want := []string{"b", "d"}; !slices.Equal(r.Changed, want) {
			t.Errorf("changed %q, want %q", r.Changed, want)
		}
		fails(t, runs(t, in, "_"), "undefined: _")
	})
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
		sources      []string
	}{
		{"runtime/R12 an unknown name is found before anything runs", "undefined: lne (did you mean len?)\n    2 | y = lne(x)", 2, 5, []string{"x = 1\ny = lne(x)"}},
		{"runtime/R12 a syntax error has its line", "syntax error: ", 2, 7, []string{"x = 1\nif x: ]"}},
		{"runtime/R12 an error has its line", "floored division by zero\n    3 | z = 1 // y", 3, 7, []string{"x = 1\ny = 0\nz = 1 // y"}},
		{
			"runtime/R12 an error shows the calls of earlier cells", "unknown binary op: int + string\n    2 | f('a')\n  at line 2 of cell 1, in f\n  at line 2",
			2, 2, []string{"def f(x):\n  return 1 + x", "\nf('a')"},
		},
		{"runtime/R12 fail has a message", "bad: 3\n    1 | fail('bad:', 3)", 1, 5, []string{"fail('bad:', 3)"}},
		{"runtime/R12 a name without a value is an error", "x has no value yet", 1, 1, []string{"x += 1"}},
		{"runtime/R12 an unknown method has a suggestion", "did you mean .append?", 1, 3, []string{"[].apend(1)"}},
		{"runtime/R12 history cannot be assigned", "cannot assign history: it is the conversation, which is read-only", 1, 1, []string{"history = 1"}},
		{"runtime/R12 load is not available", "load is not available", 1, 1, []string{"load('x', 'y')"}},
		{"runtime/R12 return outside of a function is an error", "return", 1, 1, []string{"return 1"}},
		{"runtime/R12 an argument of the wrong type is an error", "len: value of type int has no len", 1, 4, []string{"len(1)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := cells(t, c.sources...)
			fails(t, r, c.text)
			if r.Position == nil || r.Position.Line != c.line || r.Position.Column != c.column {
				t.Errorf("position %+v, want %d:%d; error %s", r.Position, c.line, c.column, r.Error)
			}
		})
	}
	t.Run("runtime/R12 a long trace is cut", func(t *testing.T) {
		r := cells(t, "def f(n):\n  return f(n - 1) if n else fail('deep')\nf(100)")
		if n := strings.Count(r.Error, "\n"); n > 20 || !strings.Contains(r.Error, "more calls") {
			t.Errorf("%d lines: %s", n, r.Error)
		}
	})
}
