//go:build unix

package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
	"lashd/engine/turn"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
)

// pythonCell runs a cell in a session of the Python executor.
func pythonCell(ctx context.Context, t *testing.T, s *plugin.Session, source string) turn.CellReply {
	t.Helper()
	reply, err := s.Execute(ctx, &plugin.CodeCall{
		TurnID: "trn_1", CellID: "c1", Language: "python", Source: source, AcceptFinish: true, Schema: json.RawMessage(`{"type":"integer"}`),
	}, cellHost{})
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return reply
}

// pythonExecutor returns the configuration of the Python executor in its sandbox.
func pythonExecutor(t *testing.T, options string) process.Config {
	t.Helper()
	c := example(t, "python-executor", options)
	found, err := exec.Command(python(t), "-c", "import os, sys; print(os.path.realpath(sys.executable)); print(os.path.realpath(sys.base_prefix))").Output()
	interpreter, prefix, ok := strings.Cut(strings.TrimSpace(string(found)), "\n")
	if err != nil || !ok {
		t.Fatalf("python3: %q, %v", found, err)
	}
	c.Argv[0], c.Confine = interpreter, &child.Confinement{Root: c.Dir, Data: c.DataDir, Sandbox: &child.Sandbox{ReadPaths: []string{prefix}}}
	return c
}

// pythonSources are the cells of plugintest in Python.
var pythonSources = plugintest.Sources{
	Set: "kept = [1]\nother = 2", Get: "kept", Other: "other", Change: "kept.append(2)", Remove: "del other",
	Define: "def twice(n):\n    return n * 2", Use: "twice(21)",
	Print: "print('hello')\n2 + 2", Fail: "half = 5\nnothing = 0\n1 / nothing", Half: "half",
	Call:     "[tools.echo(text=t).unwrap() for t in 'abc']",
	Parallel: "[r.value for r in parallel([tools.echo.later(t) for t in 'abc'])]",
	Failing:  "tools.fail('x').ok", Loop: "len([i for i in range(1000) if tools.echo(str(i)).ok])",
	Wait: "kept.append(2)\ntools.wait('')", Endless: "kept.append(2)\ntools.echo('')\nwhile True: pass",
	Exceed: []string{
		"kept.append(2)\nwhile True: pass", "kept.append(2)\nx = 'x' * (1 << 30)", "kept.append(2)\nwhile True: print('x' * 1000)",
	},
	Finish: "finish(7)", Mismatch: "finish('seven')", Submit: "submit_error('no data')", ContinueAs: "continue_as('more', 'seed')",
	History: "[m['role'] for m in history]", ChangeHistory: "history.append({})\nlen(history)", SetHistory: "history = []",
	Ambient: "import time, random\ntools.echo(str([time.time(), random.random(), random.random()])).value",
	Unsaved: "unsaved = (i for i in [])\ngood = 3", Good: "good",
}

func TestPythonContract(t *testing.T) {
	t.Run("runtime/R04 the Python executor follows the contract of executors", func(t *testing.T) {
		plugintest.RunExecutor(t, func(t *testing.T) plugin.Factory { return begin(t, pythonExecutor(t, `{"seconds":3}`)) },
			plugintest.ExecutorConfig{Sources: pythonSources})
	})
}

func TestPythonExecutor(t *testing.T) {
	t.Run("runtime/R04 runtime/R11 the Python executor runs cells and keeps globals by name", func(t *testing.T) {
		c := pythonExecutor(t, `{"seconds":1}`)
		s := open(t, begin(t, c))
		for _, cell := range []struct{ source, want string }{
			{"x = [1]\ny = {'x': x}\ndef f(n=2):\n    return len(x) + n\nclass P:\n    a = 1\np = P()\nprint('hi')\nf()", `"hi\n" 3 ""`},
			{"def g():\n    return 1 / 0\n\ng()", `"" <nil> "ZeroDivisionError: division by zero\n    2 |     return 1 / 0\n  at line 2, in g\n  at line 4"`},
			{"x = = 1", `"" <nil> "syntax error: invalid syntax\n    1 | x = = 1"`},
			{"[r.value for r in parallel([tools.note.later(text=t) for t in 'ab'])]", `"" ["note{\"text\":\"a\"}","note{\"text\":\"b\"}"] ""`},
			{"import time, random\n[time.time(), 0 <= random.random() < 1, len(history)]", `"" [1700000000.0,true,1] ""`},
			{"finish('a')", `"" <nil> "ValueError: finish: the value does not match the schema: the value is not of type integer; call finish again with a value that does\n    1 | finish('a')"`},
			{"x = 5\nwhile True: pass", `"" <nil> "the cell took too long. The globals are as they were before the cell."`},
			{"'a' * (1 << 30)", `"" <nil> "the cell used too much memory. The globals are as they were before the cell."`},
			{"x, f(), p.a", `"" [[1],3,1] ""`},
			{"import os", `"" <nil> "ImportError: the module os is not available in cells\n    1 | import os"`},
		} {
			r := pythonCell(t.Context(), t, s, cell.source)
			value := "<nil>"
			if r.Value != nil {
				value = string(r.Value)
			}
			if got := fmt.Sprintf("%q %s %q", r.Printed, value, r.Error); got != cell.want {
				t.Errorf("%s:\ngot  %s\nwant %s", cell.source, got, cell.want)
			}
		}
		if r := pythonCell(t.Context(), t, s, "finish(7)"); r.Control == nil || string(r.Control.Value) != "7" {
			t.Errorf("control %+v", r.Control)
		}
		first, err := s.CaptureExecution(t.Context())
		if err != nil || first.Changed["f"] == nil {
			t.Fatalf("captured %v, %v", first, err)
		}
		first.Stored()
		r := pythonCell(t.Context(), t, s, "del y\nx.append(2)\nz = (i for i in x)")
		if fmt.Sprint(r.Changed) != "[x y]" || len(r.Unsaved) != 1 || r.Unsaved[0].Name != "z" {
			t.Errorf("changed %q, unsaved %+v", r.Changed, r.Unsaved)
		}
		second, err := s.CaptureExecution(t.Context())
		if err != nil || len(second.Changed) != 1 || fmt.Sprint(second.Removed) != "[y]" {
			t.Fatalf("captured %v, %v", second, err)
		}
		again := open(t, begin(t, c))
		if err := again.RestoreExecution(t.Context(), second.AppliedTo(first.Changed)); err != nil {
			t.Fatal(err)
		}
		if r := pythonCell(t.Context(), t, again, "x, f(), p.a, P.a"); string(r.Value) != "[[1,2],4,1,1]" {
			t.Errorf("in another process: value %s, error %s", r.Value, r.Error)
		}
	})
	t.Run("runtime/R07 a cancelled Python cell ends, and its globals are those of before", func(t *testing.T) {
		s := open(t, begin(t, example(t, "python-executor", "")))
		pythonCell(t.Context(), t, s, "x = 1")
		if x, err := s.CaptureExecution(t.Context()); err != nil || len(x.Changed) != 1 {
			t.Errorf("captured %v, %v", x, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		reply, err := s.Execute(ctx, &plugin.CodeCall{CellID: "c2", Language: "python", Source: "x = 2\nwhile True: pass"}, cellHost{})
		if err == nil && !strings.Contains(reply.Error, "cancelled") {
			t.Errorf("reply %+v", reply)
		}
		if r := pythonCell(t.Context(), t, s, "x"); string(r.Value) != "1" {
			t.Errorf("value %s, error %s", r.Value, r.Error)
		}
	})
}
