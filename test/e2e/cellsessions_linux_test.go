package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
	"lashd/test/skip"
)

// celled is a world whose model works with code cells and replies with these texts, in order.
func celled(t *testing.T, config string, replies ...string) *world {
	t.Helper()
	var steps []fakemodel.Step
	for _, reply := range replies {
		steps = append(steps, step(says(reply)))
	}
	w := newWorld(t, "allow", steps...)
	path := filepath.Join(w.dir, "config.toml")
	w.write(path, readText(t, path)+"driver = \"rlm\"\n"+config)
	return w
}

// starlarkCell is a reply with a cell.
func starlarkCell(source string) string { return "<starlark>\n" + source + "\n</starlark>" }

func TestCellSessions(t *testing.T) {
	t.Run("runtime/R08 a cell reads the conversation as the model sees it, and cannot assign it", func(t *testing.T) {
		t.Parallel()
		list := starlarkCell(`seen = [m["role"] + ": " + m["parts"][0]["text"] for m in history]
print(text.join(seen, "\n"))`)
		w := celled(t, "", starlarkCell("print('first')"), "done", list, starlarkCell("history = []"), "end")
		w.serve()
		p := w.dial("")
		id := p.newCells(w.home)
		p.turn(id, "begin")
		p.turn(id, "go on")
		all := w.model.Requests()
		var sent []string
		for _, m := range all[2].Chat.Messages { // of the request that the cell with the list answers
			if m.Role != "system" {
				sent = append(sent, m.Role+": "+string(m.Content))
			}
		}
		want := []string{
			"user: begin", "assistant: " + starlarkCell("print('first')"), "user: first", "assistant: done", "user: go on", "assistant: " + list,
		}
		if got := p.outputs(id); len(got) != 3 || got[1] != strings.Join(want, "\n") || !strings.HasPrefix(got[2], "Error in line 1, column 1: cannot assign history") {
			t.Errorf("the model read %q, want %q", got, want)
		}
		if !slices.Equal(sent, want[:5]) {
			t.Errorf("the model was sent %q, want %q", sent, want[:5])
		}
	})
	t.Run("runtime/R04 a session that works with cells gives its parent the value and the error of its cell", func(t *testing.T) {
		t.Parallel()
		w := celled(t, "", starlarkCell(`for name in ["counter", "loser"]:
    print(tools.spawn_agent("work", name=name, wait=True).unwrap()["result"])`),
			starlarkCell(`finish({"n": [1, 2.5, None]})`), starlarkCell(`submit_error({"why": "no data"})`), "end")
		w.serve()
		p := w.dial("")
		id := p.newCells(w.home)
		p.turn(id, "begin")
		if got, want := p.observed(id), `{"status": "completed", "value": {"n": [1, 2.5, None]}}`; !strings.HasPrefix(got, want+"\n") || !strings.Contains(got, `"status": "failed"`) || !strings.Contains(got, `no data`) {
			t.Errorf("the model read %q, want %s and a failure", got, want)
		}
		agents := p.agents(id)
		if len(agents) != 2 || string(agents[0].Outcome.Value) != `{"n":[1,2.5,null]}` || agents[1].State != protocol.TaskFailed || string(agents[1].Outcome.Value) != `{"why":"no data"}` {
			t.Errorf("the subagents are %+v", agents)
		}
	})
	t.Run("runtime/R09 a cell makes 1,000 calls, and the report of its turn has 128", func(t *testing.T) {
		t.Parallel()
		w := celled(t, "", starlarkCell(`ok = [i for i in range(1000) if tools.read("a.txt").ok]
print(len(ok))`), "end")
		w.write(filepath.Join(w.work, "a.txt"), "x\n")
		w.serve()
		p := w.dial("")
		id := p.newCells(w.home)
		r := p.turn(id, "begin")
		if got := p.observed(id); got != "1000" || len(r.ToolCalls) != 128 {
			t.Errorf("the model read %q; the report has %d calls", got, len(r.ToolCalls))
		}
	})
}

// outputs returns what the model read of each cell, in order.
func (p *peer) outputs(id protocol.SessionID) (all []string) {
	p.t.Helper()
	for _, n := range ask[protocol.GraphReadResult](p, "graph/read", protocol.GraphReadParams{SessionID: id}).Data {
		if n.Message != nil && n.Message.Parts[0].Kind == protocol.PartOutput {
			all = append(all, n.Message.Parts[0].Text)
		}
	}
	return all
}

// pythonPlugin copies the example python-executor into the plugin directory, and changes texts of its plugin.json. A Python in a home
// directory is entered there, as the README of the example says.
func (w *world) pythonPlugin(oldnew ...string) {
	w.t.Helper()
	w.has("python")
	skip.Unless(w.t, "LANDLOCK", proc.Confines().Sandbox > 0, proc.Confines().String())
	found, err := exec.Command("python3", "-c", "import os, sys; print(os.path.realpath(sys.executable)); print(os.path.realpath(sys.base_prefix))").Output()
	interpreter, prefix, ok := strings.Cut(strings.TrimSpace(string(found)), "\n")
	if err != nil || !ok {
		w.t.Fatalf("python3: %q, %v", found, err)
	}
	if !strings.HasPrefix(prefix, "/usr") {
		oldnew = append(oldnew, `"python3"`, fmt.Sprintf("%q", interpreter), `"sandbox": {}`, fmt.Sprintf(`"sandbox": {"read": [%q]}`, prefix))
	}
	dir := filepath.Join(w.plugins(), "python-executor")
	if err := os.CopyFS(dir, os.DirFS("../../plugins/examples/python-executor")); err != nil {
		w.t.Fatal(err)
	}
	manifest := filepath.Join(dir, "plugin.json")
	w.write(manifest, strings.NewReplacer(oldnew...).Replace(readText(w.t, manifest)))
}

// pythonConfig lets sessions with code cells use the plugin.
const pythonConfig = "[plugins.rlm]\nexecutor = \"python-executor\"\n"

// pythonCell is a reply with a cell.
func pythonCell(source string) string { return "<python>\n" + source + "\n</python>" }

func TestPythonCells(t *testing.T) {
	t.Run("runtime/R04 the example python-executor is copied, listed and checked, and runs the cells of a turn", func(t *testing.T) {
		t.Parallel()
		w := celled(t, pythonConfig, pythonCell(`names = tools.glob("*.txt").unwrap()
def count(name):
    return len(tools.read(name, plain=True).text.splitlines())
print(count("a.txt"))`), pythonCell(`print(count("b.txt"), len(history))`), "end")
		w.pythonPlugin()
		w.write(filepath.Join(w.work, "a.txt"), "1\n2\n")
		w.write(filepath.Join(w.work, "b.txt"), "1\n2\n3\n")
		if out := w.lashd("plugin", "check", "--run", filepath.Join(w.plugins(), "python-executor")); !strings.Contains(out, "python-executor") {
			t.Errorf("the check prints %s", out)
		}
		w.serve()
		p := w.dial("")
		p.loads("python-executor", nil)
		if out := w.lashd("plugin", "list"); !strings.Contains(out, "python-executor") {
			t.Errorf("the list is %s", out)
		}
		if out := w.lashd("run", "--cwd", w.work, "count"); !strings.Contains(out, "end") {
			t.Errorf("the answer is %s", out)
		}
		id := ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data[0].ID
		if got := p.outputs(id); len(got) != 2 || got[0] != "2" || got[1] != "3 4" {
			t.Errorf("the model read %q", got)
		}
	})
	t.Run("runtime/R10 a cell of an executor without replay does not run again after SIGKILL, and the model reads that", func(t *testing.T) {
		t.Parallel()
		w := celled(t, pythonConfig, pythonCell("kept = 1"), pythonCell(`kept = 2
tools.shell("echo x >> ran")
while True: pass`), pythonCell("print(kept)"), "end")
		w.pythonPlugin(`"replay": true`, `"replay": false`)
		d := w.serve()
		p := w.dial("")
		p.loads("python-executor", nil)
		id := p.newCells(w.home)
		turn := p.start(id, "begin").TurnID
		eventually(t, "the cell has run its command", func() error {
			if w.size("ran") == 0 {
				return fmt.Errorf("no file")
			}
			return nil
		})
		d.kill()
		w.serve()
		p = w.dial("")
		if r := p.wait(turn); r.State != protocol.TurnCompleted {
			t.Errorf("the turn ended as %s: %+v", r.State, r.Issues)
		}
		got := p.outputs(id)
		if len(got) != 3 || !strings.Contains(got[1], "It is unknown how far the code ran, and it was not run again.") || got[2] != "1" || w.size("ran") != len("x\n") {
			t.Errorf("the model read %q; the command left %d bytes", got, w.size("ran"))
		}
	})
}
