package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// cellLanguage runs code cells in a language. Both languages accept the sources of these tests.
type cellLanguage struct {
	name, config string
	cell         func(source string) string
}

var cellLanguages = []cellLanguage{{"Starlark", "", starlarkCell}, {"Python", pythonConfig, pythonCell}}

// asks starts a turn whose model writes a cell, and waits until a person is asked about n calls of it.
func (l cellLanguage) asks(t *testing.T, n int, source string, files map[string]string) *asking {
	t.Helper()
	a := &asking{world: celled(t, l.config, l.cell(source), "done")}
	config := filepath.Join(a.dir, "config.toml")
	a.write(config, strings.Replace(readText(t, config), `"allow"`, `"ask"`, 1))
	for name, text := range files {
		a.write(filepath.Join(a.work, name), text)
	}
	a.has("python")
	if l.name == "Python" {
		a.pythonPlugin()
	}
	a.plugin("guard", map[string]string{"main.py": guardProgram, "plugin.json": guardManifest})
	a.daemon = a.serve()
	a.peer = a.dial("cli_one")
	a.peer.loads("guard", nil)
	if l.name == "Python" {
		a.peer.loads("python-executor", nil)
	}
	a.id = a.peer.session(a.home)
	a.turn = a.peer.start(a.id, "go").TurnID
	a.questions(n)
	return a
}

// questions waits until n decisions are open.
func (a *asking) questions(n int) {
	a.t.Helper()
	eventually(a.t, fmt.Sprintf("a person is asked about %d calls", n), func() error {
		a.asked = ask[protocol.DecisionListResult](a.peer, "decision/list", protocol.DecisionListParams{SessionID: a.id}).Data
		if len(a.asked) != n {
			return fmt.Errorf("%d decisions are open: %+v", len(a.asked), ask[protocol.TurnReport](a.peer, "turn/read", protocol.TurnParams{TurnID: a.turn}))
		}
		return nil
	})
}

// guardManifest and guardProgram are a plugin that changes and denies commands before they run.
const guardManifest = `{"name":"guard","lashd":{"process":{"command":["python3","-S","${PLUGIN_ROOT}/main.py"]},"hooks":["beforeToolCall"]}}`

const guardProgram = `
import json, sys

def answer(method, p):
    if method == "initialize":
        return {k: p[k] for k in ("protocolVersion", "pluginId", "nonce", "contributes")}
    command = p["context"]["args"].get("command", "") if method == "hook/beforeToolCall" else ""
    if "change-me" in command:
        return {"directives": [{"kind": "replace_tool_args", "args": {"command": command.replace("change-me", "changed")}}]}
    if "deny-me" in command:
        failure = {"class": "permissionDenied", "code": "guarded", "message": "The guard denies this.", "source": "plugin"}
        return {"directives": [{"kind": "short_circuit_tool", "output": {"status": "failure", "failure": failure}}]}
    return {}

for line in sys.stdin:
    m = json.loads(line)
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": answer(m["method"], m.get("params", {}))}), flush=True)
`

// finishes waits for the turn and returns what the model read of its cell.
func (a *asking) finishes() string {
	a.t.Helper()
	if r := a.peer.wait(a.turn); r.State != protocol.TurnCompleted || r.Outcome.Text != "done" {
		a.t.Fatalf("the turn ended as %s: %+v", r.State, r.Issues)
	}
	return a.peer.observed(a.id)
}

// TestChangedCallsOfCells answers questions about calls of code cells with other arguments.
func TestChangedCallsOfCells(t *testing.T) {
	for _, l := range cellLanguages {
		t.Run("issue/20-5 a call of a cell in "+l.name+" runs with the arguments of a person, also after SIGKILL, and once", func(t *testing.T) {
			t.Parallel()
			a := l.asks(t, 2, `both = parallel([tools.shell.later("printf no >> one", plain=True), tools.shell.later("printf no >> two; cat two", plain=True)])
print([r.ok for r in both])
print(both[1].text)`, nil)
			for i, name := range []string{"one", "two"} {
				d := a.asked[i].Detail
				if !d.Editable || d.Command == nil || !strings.HasPrefix(d.Command.Command, "printf no >> "+name) || d.Command.Dir != a.work {
					t.Errorf("the question shows %+v", d)
				}
			}
			a.wins(a.asked[0], changes(`{"command":"printf yes >> one"}`))
			a.restarts(nil)
			a.questions(1)
			if a.size("one")+a.size("two") != 0 {
				t.Error("a call ran before the other question was answered")
			}
			a.wins(a.asked[0], changes(`{"command":"printf mine >> two; cat two","plain":true}`))
			seen := a.finishes()
			if one, two := readText(t, filepath.Join(a.work, "one")), readText(t, filepath.Join(a.work, "two")); one != "yes" || two != "mine" {
				t.Errorf("the commands wrote %q and %q", one, two)
			}
			want := "[True, True]\n[A person changed the arguments of this call before it ran. It ran with " + `{"command":"printf mine >> two; cat two","plain":true}` + "]\nmine"
			if legible(seen) != want {
				t.Errorf("the model reads %q, want %q", seen, want)
			}
		})
		t.Run("issue/20-5 hooks judge what a person changes in a call of a cell in "+l.name, func(t *testing.T) {
			t.Parallel()
			a := l.asks(t, 4, `names = ["printf no >> a", "printf no >> b", "printf no >> c", "printf change-me >> d"]
for r in parallel([tools.shell.later(name, plain=True) for name in names]):
    print(r.error.code if not r.ok else "ok")`, nil)
			if got := a.asked[3].Detail.Command.Command; got != "printf changed >> d" {
				t.Errorf("the question about the call that the plugin changed shows %q", got)
			}
			a.wins(a.asked[0], changes(`{"command":"printf change-me >> a"}`))
			a.wins(a.asked[1], changes(`{"command":"printf deny-me >> b"}`))
			a.wins(a.asked[2], changes(`{"command":"printf yes >> c"}`))
			a.wins(a.asked[3], changes(`{"command":"printf yes >> d"}`))
			if seen, want := a.finishes(), "changed_by_plugin\nguarded\nok\nok\n"; strings.TrimSpace(seen) != strings.TrimSpace(want) {
				t.Errorf("the model reads %q, want %q", seen, want)
			}
			for name, want := range map[string]string{"c": "yes", "d": "yes"} {
				if got := readText(t, filepath.Join(a.work, name)); got != want {
					t.Errorf("%s is %q", name, got)
				}
			}
			if a.size("a")+a.size("b") != 0 {
				t.Error("a call that a plugin changed or denied ran")
			}
		})
		t.Run("issue/20-5 undo takes back what ran with the arguments of a person in a cell in "+l.name, func(t *testing.T) {
			t.Parallel()
			a := l.asks(t, 3, `print([r.ok for r in parallel([tools.write.later("f", "theirs\n"), tools.write.later("g", "theirs\n"), tools.shell.later("printf no > h")])])`,
				map[string]string{"f": twentyLines, "g": twentyLines, "h": "before\n"})
			a.wins(a.asked[0], changes(`{"path":"new","content":"mine\n"}`))
			a.wins(a.asked[1], takes(0))
			a.wins(a.asked[2], changes(`{"command":"printf yes > h"}`))
			if seen := strings.TrimSpace(a.finishes()); seen != "[True, True, True]" {
				t.Errorf("the model reads %q", seen)
			}
			a.holds(t, map[string]string{"f": twentyLines, "new": "mine\n", "g": "theirs\n", "h": "yes"})
			r := ask[protocol.SessionRewindResult](a.peer, "session/rewind", protocol.SessionRewindParams{SessionID: a.id, ToTurn: a.turn, Files: protocol.RewindOnly})
			a.holds(t, map[string]string{"f": twentyLines, "new": "", "g": twentyLines, "h": "before\n"})
			if a.size("new") != 0 {
				t.Errorf("the new file is left: %+v", r)
			}
		})
	}
}

// holds checks the texts of files in the workspace; "" means that there is none.
func (a *asking) holds(t *testing.T, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if text == "" && a.size(name) == 0 {
			continue
		}
		if got := readText(t, filepath.Join(a.work, name)); got != text {
			t.Errorf("%s is %q, want %q", name, got, text)
		}
	}
}
