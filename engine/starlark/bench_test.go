package starlark_test

import (
	"fmt"
	"testing"

	"lashd/engine/starlark"
)

// execute runs a cell that must succeed.
func execute(b *testing.B, in *starlark.Interpreter, source string) {
	b.Helper()
	if r := in.Execute(b.Context(), &starlark.Cell{Source: source}, echoing()); r.Error != "" {
		b.Fatal(r.Error)
	}
}

// BenchmarkCapture measures a cell that changes one of 1,000 globals, with the capture of its state: one that uses only this
// global, and one that reads all of them.
func BenchmarkCapture(b *testing.B) {
	for _, c := range []struct{ name, source string }{
		{"OneUsed", "g500[0] += 1"}, {"AllUsed", everyGlobal + "g500[0] += 1"}, {"NoneUsed", "1"},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := starlark.New(starlark.Config{})
			execute(b, in, thousand)
			in.Snapshot()
			for b.Loop() {
				execute(b, in, c.source)
				if n := len(in.Snapshot()); n > 1 {
					b.Fatalf("%d globals changed", n)
				}
			}
		})
	}
}

// largeState returns 10 MB of encoded globals of three kinds.
func largeState(b *testing.B) map[string][]byte {
	b.Helper()
	in := starlark.New(starlark.Config{Limits: starlark.Limits{Value: 8 << 20}})
	execute(b, in, "texts = ['a line of a log file with some words in it, number %d' % i for i in range(60000)]")
	execute(b, in, "records = [{'id': i, 'name': 'name %d' % i, 'tags': ['a', 'b']} for i in range(60000)]")
	execute(b, in, "blob = 'x' * 4300000")
	return in.Snapshot()
}

// BenchmarkDecode measures how long a state of 10 MB takes to restore, and to restore and decode completely.
func BenchmarkDecode(b *testing.B) {
	state, size := largeState(b), 0
	for _, data := range state {
		size += len(data)
	}
	for _, c := range []struct{ name, source string }{{"Lazy", "1"}, {"Texts", "texts"}, {"All", "texts, records, blob\n1"}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				in := starlark.New(starlark.Config{Limits: starlark.Limits{Value: 8 << 20}})
				if err := in.Restore(state); err != nil {
					b.Fatal(err)
				}
				execute(b, in, fmt.Sprintf("x = 0\n%s\n0", c.source))
			}
		})
	}
}
