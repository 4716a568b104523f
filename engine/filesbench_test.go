package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/engine"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// BenchmarkFilePoints tells what file points cost a turn that calls one tool, which changes one file: the first turn of a workspace,
// later ones, and one without file points; and what it costs to undo a turn that changed a tenth of the files.
func BenchmarkFilePoints(b *testing.B) {
	for _, n := range []int{100, 1000, 20_000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			text := strings.Repeat("some text of a file\n", 200)
			for i := range n {
				write(b, dir, fmt.Sprintf("d%03d/f%05d.txt", i%200, i), fmt.Sprint(i, text))
			}
			time.Sleep(3 * time.Second) // so that what was written just now is not looked into once more
			var first, later, without, tenth, undo time.Duration
			for range b.N {
				i := 0
				one := func(dir string) { i++; write(b, dir, "d000/f00000.txt", fmt.Sprint(i)) }
				many := func(dir string) {
					for k := range n / 10 {
						write(b, dir, fmt.Sprintf("d%03d/f%05d.txt", k%200, k), fmt.Sprint(k, "changed\n"))
					}
				}
				s := setup{model: callsWork(), tools: []tool.Provider{works(dir, one, one, many)}}
				d := start(b, s)
				id := must[*protocol.SessionNewResult](b)(d.NewSession(b.Context(), &protocol.SessionNewParams{Cwd: dir})).SessionID
				timed := func(sum *time.Duration, f func()) {
					at := time.Now()
					f()
					*sum += time.Since(at)
				}
				timed(&first, func() { d.turn(b, id, "go") })
				timed(&later, func() { d.turn(b, id, "go") })
				var report *protocol.TurnReport
				timed(&tenth, func() { report = d.turn(b, id, "go") })
				timed(&undo, func() {
					d.undo(b, protocol.SessionRewindParams{SessionID: id, ToTurn: report.TurnID, Files: protocol.RewindOnly})
				})
				d.stop()
				s.config = func(c *engine.Config) { c.Files.Off = true }
				s.tools = []tool.Provider{works(dir, one)}
				d = start(b, s)
				id = must[*protocol.SessionNewResult](b)(d.NewSession(b.Context(), &protocol.SessionNewParams{Cwd: filepath.Clean(dir)})).SessionID
				timed(&without, func() { d.turn(b, id, "go") })
				d.stop()
			}
			for name, sum := range map[string]time.Duration{"first": first, "later": later, "tenth": tenth, "undo": undo, "without": without} {
				b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), name+"-ms")
			}
		})
	}
}
