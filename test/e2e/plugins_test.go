package e2e

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"lashd/rpc/protocol"
	"lashd/rpc/socket"
	"lashd/test/fakemodel"
)

// buildPlugged builds a lashd with a test plugin, and puts a lash beside it, which starts that lashd.
var buildPlugged = sync.OnceValues(func() (string, error) {
	path := filepath.Join(bin, "plugged", "lashd")
	build := exec.Command("go", "build", "-o", path, "lashd/test/e2e/plugged")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", err
	}
	return path, os.Link(filepath.Join(bin, "lash"), filepath.Join(bin, "plugged", "lash"))
})

func plugged(t *testing.T) string {
	t.Helper()
	path, err := buildPlugged()
	if err != nil {
		t.Fatal("build the lashd with a plugin:", err)
	}
	return path
}

// servePlugged starts a daemon with the test plugin.
func (h *home) servePlugged() *daemon {
	h.t.Helper()
	d := &daemon{home: h, cmd: h.command("serve")}
	d.cmd.Path = plugged(h.t)
	if err := d.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if !d.over {
			d.kill()
		}
	})
	return d
}

func TestPluginScripts(t *testing.T) {
	programs := filepath.Dir(plugged(t))
	testscript.Run(t, testscript.Params{
		Dir: "plugged/testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", programs+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("LASHD_HOME", filepath.Join(env.WorkDir, "data"))
			env.Setenv("LASHD_LOG", "error")
			env.Setenv("LASHD_SOCKET", filepath.Join(env.WorkDir, "data", "s"))
			env.Defer(func() { stop(env) })
			return os.Chmod(filepath.Join(env.WorkDir, "data"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"remember": remember, "crash": crash},
	})
}

// crash kills the daemon of a script and waits for its end. The next command starts another one.
func crash(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: crash")
	}
	ts.Check(ts.Exec("lash", "call", "server/status"))
	var status protocol.StatusResult
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &status))
	process, err := os.FindProcess(status.Pid)
	ts.Check(err)
	ts.Check(process.Kill())
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		lock, err := socket.Acquire(ts.Getenv("LASHD_HOME"))
		if err == nil {
			lock.Release()
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the daemon is still running: %v", err)
		}
	}
}

// remember sets a variable to what the group of a pattern matches in the last output.
func remember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: remember VARIABLE PATTERN")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("no match for %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// hooksAsked counts the calls of each hook from the plugin's notes.
func (h *home) hooksAsked() map[string]int {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.work, "asked"))
	if err != nil {
		h.t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[strings.TrimSuffix(line, "\n")]++
	}
	return times
}

// TestHooksAfterSIGKILL kills a daemon during the third model call. Hooks of the second batch of calls
// are settled, because the batch was stored after them, and do not run again. The checkpoint after the
// batch is not settled, so its hook runs again.
func TestHooksAfterSIGKILL(t *testing.T) {
	w := newWorld(t, "allow", step(shell("PLACEHOLDER")), step(shell("printf y >> ran")), step(stalls), done)
	first := w.servePlugged()
	p := w.dial("")
	id := p.session(w.home)
	turn := p.start(id, "go").TurnID
	w.asked(3)
	first.kill()
	w.servePlugged()
	p = w.dial("")
	if r := p.wait(turn); r.State != protocol.TurnCompleted || len(r.ToolCalls) != 2 {
		t.Fatalf("the turn is %s with %d calls: %+v", r.State, len(r.ToolCalls), r.Issues)
	}
	want := map[string]int{
		"before turn": 1, "replaced": 1, "allowed": 1, "result": 2, "checkpoint afterWork": 3, "checkpoint beforeCompletion": 1, "after turn": 1,
	}
	if got := w.hooksAsked(); !maps.Equal(got, want) {
		t.Errorf("plugin/HK-02 plugin/HK-13 hooks ran %v, want %v", got, want)
	}
	if w.size("ran") != 2 {
		t.Errorf("plugin/HK-04 the commands wrote %d bytes, want 2", w.size("ran"))
	}
	if got := w.sent(); strings.Count(strings.Join(got, "|"), "Mind the step.") != 1 {
		t.Errorf("plugin/HK-13 the model reads %q", got)
	}
}

// TestPluginShortensThePast checks that a plugin can replace a long history in the model's context by
// one sentence. The stored history does not change.
func TestPluginShortensThePast(t *testing.T) {
	steps := slices.Repeat([]fakemodel.Step{step(says("yes"))}, 5)
	w := newWorld(t, "allow", steps...)
	d := w.servePlugged()
	p := w.dial("")
	id := p.session(w.home)
	for range 4 {
		p.turn(id, "hm?")
	}
	d.kill()
	w.servePlugged()
	p = w.dial("")
	p.turn(id, "and now?")
	if got, want := w.sent(), []string{"Earlier there were 8 messages.", "and now?"}; !slices.Equal(got, want) {
		t.Errorf("plugin/HK-29 the model reads %q, want %q", got, want)
	}
	if n := len(readSession(p, id).Data); n != 10 {
		t.Errorf("plugin/HK-29 the history has %d items, want 10", n)
	}
}

// TestPluginMasksStreamedText checks that a word that a plugin masks is neither shown nor stored nor
// sent back.
func TestPluginMasksStreamedText(t *testing.T) {
	w := newWorld(t, "allow", step(says("the sekret "), says("is out")), done)
	w.servePlugged()
	p := w.dial("")
	id := p.session(w.home)
	p.attach(id, 0)
	turn := p.turn(id, "tell").TurnID
	p.completed(turn)
	p.streamed("the ****** is out")
	p.turn(id, "again")
	if got, want := w.sent(), []string{"tell", "the ****** is out", "again"}; !slices.Equal(got, want) {
		t.Errorf("plugin/HK-21 the model reads %q, want %q", got, want)
	}
	for _, e := range w.replay(id) {
		if strings.Contains(e.raw, "sekret") {
			t.Errorf("plugin/HK-21 the log contains %s", e.raw)
		}
	}
}

// notes are the state that the test plugin keeps in a session.
func (p *peer) notes(id protocol.SessionID) string {
	p.t.Helper()
	return string(ask[protocol.OperationQueryResult](p, "operation/query", protocol.OperationQueryParams{SessionID: id, Name: "tour.notes"}).Output)
}

// TestForkTakesWhatPluginsKeepNow forks a session whose plugin state has changed since the last stored
// turn.
func TestForkTakesWhatPluginsKeepNow(t *testing.T) {
	w := newWorld(t, "allow", step(says("remember")))
	w.servePlugged()
	p := w.dial("")
	id := p.session(w.home)
	p.turn(id, "go")
	eventually(t, "the plugin knows that the turn is stored", func() error {
		if got := p.notes(id); got != `["remembered"]` {
			return errors.New(got)
		}
		return nil
	})
	fork := ask[protocol.SessionNewResult](p, "session/fork", protocol.SessionForkParams{SessionID: id}).SessionID
	if got := p.notes(fork); got != `["remembered"]` {
		t.Errorf("plugin/SN-08 the fork has the notes %s", got)
	}
}

// TestPluginsDocument checks that the code in the document is the code that is compiled and run.
func TestPluginsDocument(t *testing.T) {
	doc := readText(t, "../../docs/plugin-reference.md")
	for _, example := range []struct{ file, from, to string }{
		{"example_test.go", "// Quota ", "// Example calls "}, {"tool_example_test.go", "// Weather ", "func Example_tool"},
	} {
		source := readText(t, "../../engine/plugin/"+example.file)
		from, to := strings.Index(source, example.from), strings.Index(source, example.to)
		if from < 0 || to < from || !strings.Contains(doc, "```go\n"+strings.TrimSpace(source[from:to])+"\n```\n") {
			t.Errorf("docs/plugin-reference.md does not contain the code of engine/plugin/%s", example.file)
		}
	}
	if n := strings.Count(doc, "```go\n"); n != 2 {
		t.Errorf("docs/plugin-reference.md has %d blocks of Go, of which 2 are compiled", n)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
