//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/turn"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// starlarkCoding is coding for cells in Starlark.
type starlarkCoding struct{ coding }

func (d starlarkCoding) Reply(v turn.View, reply provider.Reply) []turn.Action {
	msg := reply.Message()
	code, ok := strings.CutPrefix(msg.Answer(), "run ")
	if !ok {
		return d.coding.Reply(v, reply)
	}
	return []turn.Action{turn.Append(msg), turn.StartCode(turn.Cell{Language: "starlark", Source: code, AcceptFinish: true})}
}

var starlarkCoder = plugin.Static("coder", func(r *plugin.Registrar) error {
	r.Protocol().Driver(starlarkCoding{})
	return nil
})

// starlarked is a daemon whose cells run in the worker of package starlark. Each turn runs the source.
func starlarked(t *testing.T, dir, source string) *builtintest.Daemon {
	t.Helper()
	c := config(t, "starlark", process.Contributions{Executor: &process.CodeExecutor{Replay: true}})
	c.ID = "starlark"
	model := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "run " + source}, {Text: "done"}}}})
	return builtintest.StartWith(t, starlarkCoder, dir, 0, model, begin(t, c))
}

func TestStarlarkWorker(t *testing.T) {
	t.Run("runtime/R04 runtime/R11 the Starlark worker runs the cells of a session, and globals survive restarts", func(t *testing.T) {
		dir := t.TempDir()
		d := starlarked(t, dir, "x = [time.now() > 1600000000, random.random() < 1, len(history) > 0]\ndef f(): return len(x)\nprint(x)")
		id := d.Session(t, nil)
		for i, c := range []struct{ source, want string }{
			{"", "printed [True, True, True]\n error "},
			{"while True: x.append(1)", "The globals are as they were before the cell."},
			{"x.append(True)\nprint(f())", "printed 4\n error "},
			{"print(x, f())", "printed [True, True, True, True] 4\n error "},
		} {
			if i > 0 {
				d.Stop()
				d = starlarked(t, dir, c.source)
			}
			if got := cell(t, d, id); !strings.Contains(got, c.want) {
				t.Errorf("%s: the model reads %q, want %q", c.source, got, c.want)
			}
		}
	})
}

// workerSession is a session with the Starlark worker.
func workerSession(t *testing.T) *plugin.Session {
	t.Helper()
	c := config(t, "starlark", process.Contributions{Executor: &process.CodeExecutor{Replay: true}})
	c.ID = "starlark"
	return session(t, "ses_1", begin(t, c))
}

// ran runs a cell and returns the JSON of its value.
func ran(t *testing.T, s *plugin.Session, source string) string {
	t.Helper()
	r, err := s.Execute(t.Context(), &plugin.CodeCall{TurnID: "trn_1", CellID: "c1", Language: "starlark", Source: source}, noCalls{})
	if err != nil || r.Error != "" {
		t.Fatalf("%s: %s %v", source, r.Error, err)
	}
	return string(r.Value)
}

// noCalls is the host of cells that ask for nothing.
type noCalls struct{ plugin.CellHost }

func (noCalls) Tools() []protocol.ToolManifest { return nil }

func TestStarlarkState(t *testing.T) {
	t.Run("runtime/R11 a state of several messages reaches a new process, and the list of globals stays complete", func(t *testing.T) {
		s := workerSession(t)
		var source strings.Builder
		for i := range 30 {
			fmt.Fprintf(&source, "g%02d = 'value %02d ' + 'x' * 150000\n", i, i)
		}
		ran(t, s, source.String())
		first, err := s.CaptureExecution(t.Context())
		if err != nil || len(first.Changed) != 30 {
			t.Fatalf("captured %d values, %v", len(first.Changed), err)
		}
		first.Stored()
		ran(t, s, "g07 = [7]\nnew = 1")
		second, err := s.CaptureExecution(t.Context())
		if err != nil || len(second.Changed) != 2 {
			t.Fatalf("captured %d values, %v", len(second.Changed), err)
		}
		second.Stored()
		list, err := s.Globals(t.Context())
		if err != nil || len(list) != 31 || list[7].Type != "list" || list[8].Type != "string" || list[30].Name != "new" {
			t.Errorf("the globals are %+v, %v", list, err)
		}
		again := workerSession(t)
		ran(t, again, "other = 5")
		if err := again.RestoreExecution(t.Context(), second.AppliedTo(first.Changed)); err != nil {
			t.Fatal(err)
		}
		if got, want := ran(t, again, "[len(g00), g00[:8], g29[:8], g07, new]"), `[150009,"value 00","value 29",[7],1]`; got != want {
			t.Errorf("the values are %s, want %s", got, want)
		}
		list, err = again.Globals(t.Context())
		if err != nil || len(list) != 31 {
			t.Errorf("%d globals after the restore, %v", len(list), err)
		}
	})
}

// starlarkSources are the cells of plugintest in Starlark.
var starlarkSources = plugintest.Sources{
	Set: "kept = [1]\nother = 2", Get: "kept", Other: "other", Change: "kept.append(2)",
	Define: "def twice(n):\n    return n * 2", Use: "twice(21)",
	Print: "print('hello')\n2 + 2", Fail: "half = 5\nnothing = 0\n1 // nothing", Half: "half",
	Call:     "[tools.echo(text=t).unwrap() for t in ['a', 'b', 'c']]",
	Parallel: "[r.value for r in parallel([tools.echo.later(t) for t in ['a', 'b', 'c']])]",
	Failing:  "tools.fail('x').ok", Loop: "len([i for i in range(1000) if tools.echo(str(i)).ok])",
	Wait: "kept.append(2)\ntools.wait('')", Endless: "kept.append(2)\ntools.echo('')\nwhile True: pass",
	Exceed: []string{
		"kept.append(2)\nwhile True: pass", "kept.append(2)\nwhile True: print('x' * 1000)", "kept.append(2)\nx = 'x' * 900000000",
		"kept.append(2)\nx = sorted(range(10000000))",
	},
	Finish: "finish(7)", Mismatch: "finish('seven')", Submit: "submit_error('no data')", ContinueAs: "continue_as('more', 'seed')",
	History: "[m['role'] for m in history]", ChangeHistory: "history.append({})\nlen(history)", SetHistory: "history = []",
	Ambient: "tools.echo(str([time.now(), random.random(), random.random()])).value",
	Unsaved: "unsaved = [].append\ngood = 3", Good: "good",
}

func TestStarlarkExecutor(t *testing.T) {
	t.Run("runtime/R04 the Starlark worker follows the contract of executors", func(t *testing.T) {
		plugintest.RunExecutor(t, func(t *testing.T) plugin.Factory {
			c := config(t, "starlark", process.Contributions{Executor: &process.CodeExecutor{Replay: true}})
			c.ID, c.Options, c.Uses = "starlark", json.RawMessage(`{"steps":5000000,"output":10000}`), []process.Capability{process.UsesTools}
			return begin(t, c)
		}, plugintest.ExecutorConfig{Sources: starlarkSources})
	})
}

// clockHost serves cells that get the time. It signals that one has.
type clockHost struct {
	plugin.CellHost
	asked chan struct{}
}

func (clockHost) Tools() []protocol.ToolManifest { return nil }

func (h clockHost) Now(context.Context) (time.Time, error) {
	h.asked <- struct{}{}
	return time.Unix(1, 0), nil
}

func TestCancelledCells(t *testing.T) {
	t.Run("runtime/R07 a cell waits for the end of a cancelled one that does not stop at once", func(t *testing.T) {
		c := config(t, "starlark", process.Contributions{Executor: &process.CodeExecutor{Replay: true}})
		c.ID = "starlark"
		s, host := session(t, "ses_1", begin(t, c)), clockHost{asked: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() { // sorted does not stop when its cell is cancelled
			defer close(done)
			_, _ = s.Execute(ctx, &plugin.CodeCall{CellID: "c1", Language: "starlark", Source: "time.now()\nx = sorted(range(3000000), reverse=True)"}, host)
		}()
		<-host.asked
		cancel()
		<-done
		r, err := s.Execute(t.Context(), &plugin.CodeCall{CellID: "c2", Language: "starlark", Source: "1 + 1"}, host)
		if err != nil || string(r.Value) != "2" {
			t.Errorf("the next cell replies %+v, %v", r, err)
		}
	})
}
