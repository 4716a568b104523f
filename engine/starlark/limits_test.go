package starlark_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"lashd/engine/starlark"
	"lashd/rpc/protocol"
)

// heapMiB returns the size of the heap after a collection.
func heapMiB() int {
	runtime.GC()
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64() >> 20)
}

func TestLimits(t *testing.T) {
	small := starlark.Limits{Steps: 2_000_000, Time: time.Minute, Memory: 64 << 20, Output: 10_000}
	for _, c := range []struct{ name, source, text string }{
		{"a loop without end", "while True: pass", "the cell ran for more than 2000000 steps"},
		{"a repeated string", "s = 'x' * 900000000", "the cell used more than 64 MiB of memory"},
		{"a repeated list", "s = [0] * 900000000", "64 MiB of memory"},
		{"a repeated tuple", "n = 900000000\ns = (0,)\ns *= n", "64 MiB of memory"},
		{"a list of a long range", "x = list(range(50000000))", "range: 50000000 elements, at most 10000000 are allowed"},
		{"a list of a range", "x = list(range(9000000))", "64 MiB of memory"},
		{"a list that doubles", "x = [0]\nwhile True: x = x + x", "64 MiB of memory"},
		{"a list that doubles in place", "x = [0]\nwhile True: x += x", "64 MiB of memory"},
		{"a string that doubles", "x = 'ab'\nwhile True: x = x + x", "64 MiB of memory"},
		{"a string that doubles by %", "x = 'ab'\nwhile True: x = '%s%s' % (x, x)", "64 MiB of memory"},
		{"a string that doubles by format", "x = 'ab'\nwhile True: x = '{0}{0}'.format(x)", "64 MiB of memory"},
		{"a string that doubles by join", "x = 'ab'\nwhile True: x = x.join([x, x])", "64 MiB of memory"},
		{"a string that doubles by replace", "x = 'ab'\nwhile True: x = x.replace('a', x)", "64 MiB of memory"},
		{"many small values", "x = []\nwhile True: x.append({'a': [1]})", "64 MiB of memory"},
		{"a split into many pieces", "x = ('a,' * 4000000).split(',')", "64 MiB of memory"},
		{"a dict with many keys", "x = {i: i for i in range(10000000)}", "2000000 steps"},
		{"a sort of many values", "x = sorted(range(10000000))", "more than 2000000 steps"},
		{"a recursion without end", "def f(n): return f(n + 1) + 1\nf(0)", "calls are nested more than 1000 deep"},
		{"a recursion through builtins", "def f(x): return sorted([1], key=f)[0]\nf(0)", "calls are nested more than 1000 deep"},
		{"a print of much", "print('x' * 20000)", "the cell printed more than 9 KiB"},
		{"many prints", "while True: print('hello')", "the cell printed more than 9 KiB"},
		{"a print of a huge nested value", "x = [1]\nfor i in range(60): x = [x, x]\nprint(x)", "the cell printed more than 9 KiB"},
		{"text of a huge nested value", "x = [1]\nfor i in range(60): x = [x, x]\ny = str(x)", "64 MiB of memory"},
		{"JSON of a huge nested value", "x = [1]\nfor i in range(60): x = [x, x]\ny = json.encode(x)", "as JSON"},
		{"text of a deep value", "x = []\nfor i in range(100000): x = [x]\nprint(x)", "it is nested more than 1000 levels deep"},
		{"a comparison of deep values", "x, y = [], []\nfor i in range(20000): x, y = [x], [y]\nx == y", "maximum recursion depth"},
		{"JSON that is nested deeply", "x = json.decode('[' * 100000 + ']' * 100000)", "it is nested more than 1000 levels deep"},
		{"a regular expression on much text", "x = re.search('(a|b|cd|ef)*c', 'ab' * 4500000)", "too many for this pattern"},
		{"a long regular expression", "x = re.search('a' * 3000, 'a')", "the pattern has 3000 bytes, at most 2000"},
		{"a regular expression that repeats", "x = re.findall('((a{1,100}){1,10})', 'a' * 1000000)", "too many for this pattern"},
		{"many matches", "x = re.findall('', 'a' * 9000000)", "64 MiB of memory"},
		{"a split at every place", "x = re.split('', 'a' * 9000000)", "64 MiB of memory"},
		{"many lines", "x = text.lines(chr(10) * 9000000)", "64 MiB of memory"},
		{"a zip of many ranges", "x = list(zip(*[range(1000000) for i in range(20)]))", "64 MiB of memory"},
		{"an extended list", "x = [0]\nwhile True: x.extend(x)", "64 MiB of memory"},
		{"numbers that grow", "x = 3\nwhile True: x = x * x", "the product has more than 1048576 bits"},
		{"code that is nested deeply", "x = " + strings.Repeat("[", 100_000), "excessive nesting"},
		{"an expression that is long", "x = 1" + strings.Repeat("*1", 50_000), "an expression is too long"},
		{"code that is long", "#" + strings.Repeat("x", 300<<10), "the code has 307216 bytes, at most 262144 are allowed"},
		{"many operators", "x = " + strings.Repeat("-", 100_000) + "1", "excessive nesting"},
	} {
		t.Run("runtime/R07 "+c.name+" is an error of the cell", func(t *testing.T) {
			in := starlark.New(starlark.Config{Limits: small})
			runs(t, in, "kept = [1]")
			before := heapMiB()
			start := time.Now()
			fails(t, runs(t, in, "kept.append(2)\n"+c.source), c.text)
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %v", took)
			}
			runs(t, in, "x, y, s = 0, 0, 0") // values of a failed cell stay in its globals
			if after := heapMiB(); after > before+3 {
				t.Errorf("%d MiB before the cell, %d MiB after it", before, after)
			}
		})
	}
	t.Run("runtime/R07 a cell that exceeds a limit leaves the globals as they were", func(t *testing.T) {
		in := starlark.New(starlark.Config{Limits: small})
		runs(t, in, "a = [1]", "b = [a]", "c = 'old'\ndef f(): return 1", "m = [].append\nn = 1")
		r := runs(t, in, "b[0].append(2)\nc = 'new'\nd = 4\nm = 2\ndef f(): return 2\nwhile True: pass")
		if len(r.Changed) > 0 || !strings.Contains(r.Error, "The globals are as they were before the cell.") {
			t.Errorf("changed %q, error %s", r.Changed, r.Error)
		}
		wants(t, runs(t, in, "[a, b, c, f(), type(m)]"), `[[1],[[1]],"old",1,"builtin_function_or_method"]`)
		fails(t, runs(t, in, "d"), "undefined: d")
		wants(t, runs(t, in, "b[0].append(3)\na"), "[1,3]")
	})
	t.Run("runtime/R07 calls of the host do not count as active time", func(t *testing.T) {
		in := starlark.New(starlark.Config{Limits: starlark.Limits{Time: 50 * time.Millisecond}})
		in.Bind(someTools())
		h := echoing()
		over := make(chan struct{})
		h.before = func(context.Context) error { <-over; return nil }
		time.AfterFunc(150*time.Millisecond, func() { close(over) })
		r := in.Execute(t.Context(), &starlark.Cell{Source: "tools.t(a=1).value"}, h)
		wants(t, r, `{"a":1}`)
		fails(t, runs(t, in, "while True: pass"), "the cell was active for more than 50ms")
	})
	t.Run("runtime/R07 a cancelled cell ends and leaves the globals as they were", func(t *testing.T) {
		in := starlark.New(starlark.Config{})
		in.Bind(someTools())
		runs(t, in, "x = 1")
		ctx, cancel := context.WithCancel(t.Context())
		h := echoing()
		h.before = func(ctx context.Context) error { cancel(); <-ctx.Done(); return context.Cause(ctx) }
		fails(t, in.Execute(ctx, &starlark.Cell{Source: "x = 2\ntools.t()"}, h), "the cell was cancelled")
		wants(t, runs(t, in, "x"), "1")
		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		fails(t, in.Execute(ctx, &starlark.Cell{Source: "x = 2\nwhile True: pass"}, h), "the cell was cancelled")
		wants(t, runs(t, in, "x"), "1")
	})
	t.Run("runtime/R07 a loop of 1,000 calls works", func(t *testing.T) {
		h := echoing()
		wants(t, calling(t, h, "n = 0\nfor i in range(1000): n += tools.t(i=i).unwrap()['i']\nn"), "499500")
		if len(h.batches) != 1000 {
			t.Errorf("%d batches", len(h.batches))
		}
	})
	t.Run("runtime/R07 a large output of a tool is an error of the cell", func(t *testing.T) {
		in := starlark.New(starlark.Config{Limits: small})
		in.Bind(someTools())
		h := &hosting{call: func(starlark.Call) protocol.ToolOutput {
			return protocol.ToolOutput{Status: protocol.OutputSuccess, Value: []byte(`"` + strings.Repeat("x", 1000) + strings.Repeat(`\ud800`, 3) + `"`)}
		}}
		r := in.Execute(t.Context(), &starlark.Cell{Source: "len(tools.t().value)"}, h)
		wants(t, r, "1009") // an invalid escape is a replacement character
	})
	t.Run("runtime/R07 a panic is an error of the cell", func(t *testing.T) {
		h := echoing()
		h.before = func(context.Context) error { panic(errors.New("oops")) }
		fails(t, calling(t, h, "tools.t()"), "internal error of the interpreter: oops")
	})
}
