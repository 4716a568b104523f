package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// manyFiles makes a workspace of files of 4 KB, in 200 directories.
func manyFiles(b *testing.B, n int) (dir string) {
	dir = b.TempDir()
	text := strings.Repeat("some text of a file\n", 200)
	for i := range n {
		write(b, dir, fmt.Sprintf("d%03d/f%05d.txt", i%200, i), fmt.Sprint(i, text))
	}
	time.Sleep(3 * time.Second) // so that what was written just now is not looked into once more
	return dir
}

// BenchmarkFilePoints measures a turn that calls one tool, which changes one file: with file points and without, and how much
// of it is left where the model takes a while, as they do.
func BenchmarkFilePoints(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		dir := manyFiles(b, n)
		for _, reply := range []time.Duration{0, 300 * time.Millisecond} {
			for _, off := range []bool{true, false} {
				b.Run(fmt.Sprintf("files=%d/reply=%s/off=%t", n, reply, off), func(b *testing.B) {
					i := 0
					w := works(dir)
					w.run = func(context.Context, tool.Invocation) (tool.Result, error) {
						i++
						write(b, dir, "d000/f00000.txt", fmt.Sprint(i))
						return tool.Result{Output: protocol.Succeed("done")}, nil
					}
					d := start(b, setup{model: thinks(reply), tools: []tool.Provider{w}, config: func(c *engine.Config) { c.FileLimits.Off = off }})
					id := d.beside(b, dir)
					d.turn(b, id, "go") // the first look
					var took []time.Duration
					for b.Loop() {
						at := time.Now()
						d.turn(b, id, "go")
						took = append(took, time.Since(at)-2*reply)
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[0].Microseconds())/1000, "least-ms")
					b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
				})
			}
		}
	}
}

// thinks is callsWork with a model that takes a while for each reply.
func thinks(d time.Duration) provider.Provider {
	next := callsWork()
	return modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		time.Sleep(d)
		next.Stream(ctx, req)(yield)
	})
}

// BenchmarkManyChanges measures the cost of file points for a new workspace, and when a turn changes a tenth of the files, and what it
// costs to undo that.
func BenchmarkManyChanges(b *testing.B) {
	for _, n := range []int{100, 1000, 20_000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			dir := manyFiles(b, n)
			var first, tenth, undo time.Duration
			for range b.N {
				many := func(dir string) {
					for k := range n / 10 {
						write(b, dir, fmt.Sprintf("d%03d/f%05d.txt", k%200, k), fmt.Sprint(k, "changed\n"))
					}
				}
				d := start(b, setup{model: callsWork(), tools: []tool.Provider{works(dir, func(string) {}, many)}})
				id := d.beside(b, dir)
				timed := func(sum *time.Duration, f func()) {
					at := time.Now()
					f()
					*sum += time.Since(at)
				}
				timed(&first, func() { d.turn(b, id, "go") })
				var report *protocol.TurnReport
				timed(&tenth, func() { report = d.turn(b, id, "go") })
				timed(&undo, func() { d.undo(b, onlyFiles(id, report.TurnID)) })
				d.stop()
			}
			for name, sum := range map[string]time.Duration{"first": first, "tenth": tenth, "undo": undo} {
				b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), name+"-ms")
			}
		})
	}
}
