package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/driver/rlm"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// cellHost serves the cells of a benchmark: tools that answer at once.
type cellHost struct{ tools []protocol.ToolManifest }

func (h *cellHost) Tools() []protocol.ToolManifest { return h.tools }

func (h *cellHost) Call(_ context.Context, calls []tool.Request) ([]protocol.ToolOutput, error) {
	return slices.Repeat([]protocol.ToolOutput{protocol.Succeed("x")}, len(calls)), nil
}

func (h *cellHost) Now(context.Context) (time.Time, error) { return time.Time{}, nil }
func (h *cellHost) Random(context.Context) ([]byte, error) { return make([]byte, 32), nil }
func (h *cellHost) History() []*protocol.Message           { return nil }

// hundredTools returns tools with schemas of the usual size.
func hundredTools() []protocol.ToolManifest {
	var tools []protocol.ToolManifest
	for i := range 100 {
		tools = append(tools, protocol.ToolManifest{
			Name: fmt.Sprintf("server%d.tool%d", i%10, i), Description: "Does something useful with a file of the workspace, and returns what it found.",
			Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"The file."},"limit":{"type":"integer","description":"Lines."}},"required":["path"]}`),
		})
	}
	return tools
}

// coder is a session whose cells run in a worker of the real program, in its sandbox, as in the daemon.
type coder struct {
	tb      testing.TB
	session *plugin.Session
	host    *cellHost
}

// newCoders returns a function that opens sessions.
func newCoders(tb testing.TB) func() *coder {
	tb.Helper()
	bin, err := built()
	if err != nil {
		tb.Fatal(err)
	}
	program := filepath.Join(bin, "lashd")
	host, err := plugin.NewHost([]plugin.Factory{rlm.Factory{Executor: process.Private{Config: process.Config{
		ID: "starlark", Version: "1", Argv: []string{program, "worker"}, Dir: "/", Log: slog.New(slog.DiscardHandler), Tireless: true,
		Contributes: process.Contributions{Executor: &process.CodeExecutor{Replay: true}}, Uses: []process.Capability{process.UsesTools},
		Confine: &child.Confinement{Sandbox: &child.Sandbox{ReadPaths: []string{program}}},
	}}}}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	opened := 0
	return func() *coder {
		opened++
		s, err := host.Open(tb.Context(), rlm.ID, nil, plugin.BuildContext{SessionID: protocol.SessionID(fmt.Sprint("ses_", opened))})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = s.Close() })
		return &coder{tb, s, &cellHost{hundredTools()}}
	}
}

// run runs a cell that must succeed, and returns how long it took.
func (c *coder) run(source string) time.Duration {
	begin := time.Now()
	r, err := c.session.Execute(c.tb.Context(), &plugin.CodeCall{TurnID: "trn_1", CellID: "trn_1/cell/1", Language: "starlark", Source: source}, c.host)
	took := time.Since(begin)
	if err != nil || r.Error != "" {
		c.tb.Fatal(r.Error, err)
	}
	return took
}

// capture captures what changed since the last capture, and returns it with the time that it took.
func (c *coder) capture() (plugin.ExecutionChange, time.Duration) {
	begin := time.Now()
	k, err := c.session.CaptureExecution(c.tb.Context())
	took := time.Since(begin)
	if err != nil {
		c.tb.Fatal(err)
	}
	if k == nil {
		return plugin.ExecutionChange{}, took
	}
	k.Stored()
	return k.ExecutionChange, took
}

// echo returns a function that sends a line of n bytes through the pipes of another process and back: the least that a cell can take.
func echo(tb testing.TB, n int) func() time.Duration {
	tb.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { in.Close(); io.Copy(io.Discard, out); cmd.Wait() })
	line, lines := append(bytes.Repeat([]byte("x"), n-1), '\n'), bufio.NewReaderSize(out, 1<<20)
	return func() time.Duration {
		begin := time.Now()
		go in.Write(line)
		for left := n; left > 0; {
			got, err := lines.ReadSlice('\n')
			if left -= len(got); err != nil && err != bufio.ErrBufferFull {
				tb.Fatal(err)
			}
		}
		return time.Since(begin)
	}
}

// paired reports the median and the minimum of both durations in microseconds, and the ratio of the medians.
func paired(b *testing.B, name string, took []time.Duration, floor string, least []time.Duration) {
	us := func(d time.Duration) float64 { return d.Seconds() * 1e6 }
	b.ReportMetric(us(median(took)), name+"-us")
	b.ReportMetric(us(slices.Min(took)), name+"-min-us")
	b.ReportMetric(us(median(least)), floor+"-us")
	b.ReportMetric(us(median(took))/us(median(least)), "x-"+floor)
}

// BenchmarkCellStart measures the smallest cell in a warm worker that has 100 tools, next to an echo through a process.
func BenchmarkCellStart(b *testing.B) {
	c := newCoders(b)()
	c.run("1")
	least := echo(b, 200)
	var cells, echoes []time.Duration
	for b.Loop() {
		cells, echoes = append(cells, c.run("1")), append(echoes, least())
	}
	paired(b, "cell", cells, "echo", echoes)
}

// BenchmarkCellCapture measures the capture of one changed among 1,000 globals, next to that of a session with one global.
func BenchmarkCellCapture(b *testing.B) {
	open := newCoders(b)
	many, one := open(), open()
	for i := range 10 {
		var source strings.Builder
		for j := range 100 {
			fmt.Fprintf(&source, "g%d = [%d, 'the value of a global']\n", i*100+j, j)
		}
		many.run(source.String())
	}
	one.run("g500 = [0, 'the value of a global']")
	many.capture()
	one.capture()
	var a, z []time.Duration
	for b.Loop() {
		many.run("g500[0] += 1")
		one.run("g500[0] += 1")
		k, took := many.capture()
		_, least := one.capture()
		if len(k.Changed) != 1 || len(k.Changed["g500"]) > 60 || len(k.Removed) != 0 {
			b.Fatalf("captured %d values, %d bytes of g500", len(k.Changed), len(k.Changed["g500"]))
		}
		a, z = append(a, took), append(z, least)
		b.ReportMetric(float64(len(k.Changed)), "components")
		b.ReportMetric(float64(len(k.Changed["g500"])), "bytes")
	}
	paired(b, "capture", a, "single", z)
}

// BenchmarkCellReopen measures how long a warm worker takes to get 10 MB of globals and to run a cell that uses one of them, next to
// an echo of 10 MB.
func BenchmarkCellReopen(b *testing.B) {
	open := newCoders(b)
	c := open()
	for i := range 20 {
		c.run(fmt.Sprintf("g%d = ['a line of a log file with some words in it, number %%d' %% i for i in range(8800)]", i))
	}
	k, _ := c.capture()
	size := 0
	for _, data := range k.Changed {
		size += len(data)
	}
	b.ReportMetric(float64(size)/1e6, "MB")
	least := echo(b, size)
	again := open()
	again.run("1")
	var took, echoes []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := again.session.RestoreExecution(b.Context(), k.Changed); err != nil {
			b.Fatal(err)
		}
		again.run("g7[0]")
		took, echoes = append(took, time.Since(begin)), append(echoes, least())
	}
	paired(b, "reopen", took, "echo", echoes)
}
