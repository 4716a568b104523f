package starlark_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"lashd/engine/starlark"
)

func TestState(t *testing.T) {
	for _, c := range []struct{ name, define, use, value string }{
		{"None and booleans", "x = [None, True, False]", "x", "[null,true,false]"},
		{"integers of any size", "x = [0, -1, 63, 1 << 62, -(1 << 200), 9223372036854775807, -9223372036854775808]", "x == [0, -1, 63, 1 << 62, -(1 << 200), 9223372036854775807, -9223372036854775808]", "true"},
		{"floats", "x = [1.5, -0.0, float('nan'), float('inf'), -float('inf')]", "str(x)", `"[1.5, -0.0, nan, +inf, -inf]"`},
		{"strings", `x = ["", "a\x00\n", "é𝄞"]`, "x", `["","a\u0000\n","é𝄞"]`},
		{"bytes", `x = b"\xff\x00"`, `x == b"\xff\x00"`, "true"},
		{"containers", "x = {'l': [1, (2, 3), ()], (1, 'k'): set([4, 5]), 2: {}}", "str(x)", `"{\"l\": [1, (2, 3), ()], (1, \"k\"): set([4, 5]), 2: {}}"`},
		{"ranges", "x = [range(3), range(5, 1, -2), range(0)]", "[list(r) for r in x]", "[[0,1,2],[5,3],[]]"},
		{"structs", "x = struct(a=1, b=[2])", "[x.a, x.b, str(x)]", `[1,[2],"struct(a = 1, b = [2])"]`},
		{"results", "x = [tools.t.later(a=1)]\nx = parallel(x)", "[x[0].ok, x[0].unwrap()]", `[true,{"a":1}]`},
		{"functions", "def x(a, b=2, *, c=3):\n  'doc'\n  return [a, b, c]", "x(1, c=4)", "[1,2,4]"},
		{"a function on one line with a comment", "def x(): return 5 # five", "x()", "5"},
		{"recursive functions", "def x(n): return 1 if n < 2 else n * x(n - 1)", "x(5)", "120"},
		{"functions with mutable defaults", "def x(a, seen=[]):\n  seen.append(a)\n  return seen\nx(1)", "x(2)", "[1,2]"},
		{"lambdas in brackets that span lines", "x = [lambda a: (\n  a +\n1)[0], lambda b,\n  c=2: [b,c][1]]\ny = 1", "x[1](7)", "2"},
		{"lambdas that end with an index, a slice or a tuple", "x = (lambda a: a[0], lambda a: a[1:], lambda a: (a, 1), lambda a: -a[1], lambda a: a if a else a[0], lambda a: lambda: a[1])", "s = 'ab'\n[x[0](s), x[1](s), x[2](s)[1], x[3]([1, 2]), x[4](s), x[5](s)()]", `["a","b",1,-2,"ab","b"]`},
		{"closures", "def make(n):\n  hits = [n]\n  def add(k):\n    hits.append(k)\n    return hits\n  return add\nx = make(1)\nx(2)", "x(3)", "[1,2,3]"},
		{"functions that a loop defined", "x = []\nfor i in [1, 2]:\n  def f(k=i): return k\n  x.append(f)", "[f() for f in x]", "[1,2]"},
		{"builtins and modules", "x = [len, json.decode, json]", "[x[0]([1]), x[1]('2'), x[2].encode(3)]", `[1,2,"3"]`},
		{"tools", "x = tools.t", "x(a=4).unwrap()", `{"a":4}`},
		{"values that occur twice", "y = [1]\nx = {'a': y, 'b': y}\ny = 0", "x['a'].append(2)\nx['b']", "[1,2]"},
		{"values that two globals share", "x = [1]\ny = {'k': x}", "x.append(2)\ny['k']", "[1,2]"},
		{"a value that the newer of two globals keeps alone", "a = [[1], 2]\nx = [a[0]]", "a = 0\nx", "[[1]]"},
		{"functions that share a variable", "def make():\n  n = [0]\n  def inc(): n[0] += 1\n  def get(): return n[0]\n  return inc, get\ninc, get = make()", "inc()\nget()", "1"},
	} {
		t.Run("runtime/R11 a restart keeps "+c.name, func(t *testing.T) {
			in := starlark.New(starlark.Config{})
			in.Bind(someTools())
			stored := map[string][]byte{}
			if r := runs(t, in, c.define); r.Error != "" || len(r.Unsaved) > 0 {
				t.Fatalf("error %q, unsaved %+v", r.Error, r.Unsaved)
			}
			for range 2 { // a decoded value encodes as before
				in = reloaded(t, in, stored)
				in.Bind(someTools())
				if r := runs(t, in, "0"); len(r.Changed) > 0 {
					t.Errorf("a cell that uses nothing changes %q", r.Changed)
				}
				uses := []string{}
				for _, g := range in.Globals() {
					uses = append(uses, g.Name)
				}
				if r := runs(t, in, "["+strings.Join(uses, ",")+"]\n0"); len(r.Changed) > 0 || len(r.Unsaved) > 0 {
					t.Errorf("reading changes %q; unsaved %+v", r.Changed, r.Unsaved)
				}
			}
			wants(t, runs(t, in, c.use), c.value)
		})
	}
	t.Run("runtime/R11 sharing survives a restart in a chain of globals", func(t *testing.T) {
		in, stored := starlark.New(starlark.Config{}), map[string][]byte{}
		runs(t, in, "a = [1]", "b = [a, [2]]", "c = [b[1]]")
		in = reloaded(t, in, stored)
		runs(t, in, "a = 5") // b becomes the owner of the list
		in = reloaded(t, in, stored)
		runs(t, in, "c[0].append(3)")
		in = reloaded(t, in, stored)
		wants(t, runs(t, in, "b[0].append(9)\n[a, b, c]"), "[5,[[1,9],[2,3]],[[2,3]]]")
	})
	t.Run("runtime/R11 a value that cannot be saved is reported, and the others are saved", func(t *testing.T) {
		in, stored := starlark.New(starlark.Config{}), map[string][]byte{}
		r := runs(t, in, "cycle = []\ncycle.append(cycle)\nmethod = [].append\ncall = [1]\nok = [call]\ndeep = []\nfor i in range(2000): deep = [deep]")
		names := []string{}
		for _, u := range r.Unsaved {
			names = append(names, u.Name+": "+u.Reason)
		}
		want := []string{
			"cycle: it contains itself: a list contains a reference to itself", "deep: it is nested more than 1000 levels deep",
			"method: it contains the method append, which cannot be saved; save the value and call the method later",
		}
		if !slices.Equal(names, want) {
			t.Errorf("unsaved %q", names)
		}
		wants(t, runs(t, in, "len(cycle)"), "1") // usable until the restart
		in = reloaded(t, in, stored)
		wants(t, runs(t, in, "ok"), "[[1]]")
		fails(t, runs(t, in, "cycle"), "the value of cycle was lost when the session was reloaded, because it could not be saved: it contains itself")
		wants(t, runs(t, in, "cycle = 1", "cycle"), "1")
	})
	t.Run("runtime/R11 a value that cannot be saved leaves shared values to others", func(t *testing.T) {
		in, stored := starlark.New(starlark.Config{}), map[string][]byte{}
		runs(t, in, "bad = [[1], [].append]", "good = bad[0]")
		in = reloaded(t, in, stored)
		wants(t, runs(t, in, "good"), "[1]")
	})
	t.Run("runtime/R11 a global that is too large is not saved", func(t *testing.T) {
		in := starlark.New(starlark.Config{Limits: starlark.Limits{Value: 1000}})
		if r := runs(t, in, "x = 'a' * 2000"); len(r.Unsaved) != 1 || r.Unsaved[0].Reason != "it is larger than 1000 bytes" {
			t.Errorf("unsaved %+v", r.Unsaved)
		}
		if r := runs(t, in, "x = 'a'"); len(r.Unsaved) != 0 || len(r.Changed) != 1 {
			t.Errorf("unsaved %+v, changed %q", r.Unsaved, r.Changed)
		}
	})
	t.Run("runtime/R11 one changed among 1,000 globals is one changed value", func(t *testing.T) {
		in := starlark.New(starlark.Config{})
		runs(t, in, thousand)
		in.Snapshot()
		runs(t, in, "g500.append(1)")
		if got := slices.Collect(maps.Keys(in.Snapshot())); !slices.Equal(got, []string{"g500"}) {
			t.Errorf("changed %q", got)
		}
		runs(t, in, everyGlobal+"\ng7.append(1)")
		if got := slices.Collect(maps.Keys(in.Snapshot())); !slices.Equal(got, []string{"g7"}) {
			t.Errorf("after a cell that reads all, changed %q", got)
		}
	})
	t.Run("runtime/R11 a change through another global is noticed", func(t *testing.T) {
		in := starlark.New(starlark.Config{})
		runs(t, in, "a = [[1]]", "b = {'k': a[0]}", "other = [1]")
		in.Snapshot()
		if r := runs(t, in, "b['k'].append(2)"); !slices.Equal(r.Changed, []string{"a"}) {
			t.Errorf("changed %q, want the owner of the list", r.Changed)
		}
	})
	t.Run("runtime/R11 a damaged value is an error when it is used", func(t *testing.T) {
		in, stored := starlark.New(starlark.Config{}), map[string][]byte{}
		runs(t, in, "x = [1, 2]\ny = 3")
		reloaded(t, in, stored)
		stored["x"] = stored["x"][:len(stored["x"])-1]
		again := starlark.New(starlark.Config{})
		if err := again.Restore(stored); err != nil {
			t.Fatal(err)
		}
		fails(t, runs(t, again, "x"), "the stored value of x cannot be read")
		wants(t, runs(t, again, "y"), "3")
		stored["x"] = []byte{9}
		if err := again.Restore(stored); err == nil || !strings.Contains(err.Error(), "restore the global x") {
			t.Errorf("error %v", err)
		}
		wants(t, runs(t, again, "y"), "3")
	})
	t.Run("runtime/R11 a frame switch clears the globals", func(t *testing.T) {
		in := starlark.New(starlark.Config{})
		runs(t, in, "x = 1")
		if err := in.Restore(nil); err != nil {
			t.Fatal(err)
		}
		fails(t, runs(t, in, "x"), "undefined: x")
	})
	t.Run("runtime/R11 globals are described with type and size", func(t *testing.T) {
		in, stored := starlark.New(starlark.Config{}), map[string][]byte{}
		runs(t, in, "x = 'abc'\ndef f(): pass\ny = [].append")
		for range 2 {
			got := fmt.Sprint(in.Globals())
			if want := "[{f function 29} {x string 8} {y builtin_function_or_method 126}]"; got != want {
				t.Errorf("globals %s, want %s", got, want)
			}
			in = reloaded(t, in, stored)
		}
	})
}

// thousand assigns 1,000 globals, everyGlobal reads them.
var thousand, everyGlobal = func() (string, string) {
	var set, get strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&set, "g%d = [%d, 'value', {'k': [1, 2, 3]}]\n", i, i)
		fmt.Fprintf(&get, "len(g%d)\n", i)
	}
	return set.String(), get.String()
}()
