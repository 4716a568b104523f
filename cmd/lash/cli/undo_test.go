package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
)

func TestUndoOfATurnOrAPoint(t *testing.T) {
	p := newPlace(t)
	p.write("script.json", `{"turns": [{"match": {"lastUserContains": "change"}, "replies": [
		{"toolCalls": [{"name": "shell", "args": {"command": "echo new > script.sh; chmod 755 script.sh"}}]}, {"text": "done"}]}],
		"otherwise": {"replies": [{"text": "hello"}]}}`)
	file := filepath.Join(p.work, "script.sh")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old\n")
	p.want(0, "done\n", "", "run", "--allow", "change it")
	var points []protocol.FilePoint
	if err := json.Unmarshal([]byte(p.run("session", "points", "--json").out), &points); err != nil || len(points) != 1 {
		t.Fatal(points, err)
	}
	turn, point := string(points[0].TurnID), string(points[0].ID)
	for _, args := range [][]string{{"session", "diff"}, {"session", "diff", turn}, {"session", "diff", point}} {
		p.want(0, "# script.sh: modified mode 600 to 755\n--- a/script.sh\n", "", args...)
	}
	p.want(0, "mode 600 to 755", "", "session", "diff", "--stat")

	write("mine\n")
	p.want(console.ExitFailed, "conflict: changedSince", "to overwrite the changes, repeat it with --force", "session", "undo", point)
	p.want(0, "script.sh", "1 file restored to before turn 1: \"change it\"\n", "session", "undo", "--force", point)
	points = nil
	if err := json.Unmarshal([]byte(p.run("session", "points", p.turnSession(turn), "--json").out), &points); err != nil || len(points) != 2 {
		t.Fatal(points, err)
	}
	p.want(0, "script.sh", "1 file restored to before the undo "+string(points[1].ID), "session", "undo", p.turnSession(turn), string(points[1].ID))
	p.want(0, "", "", "run", "a newer session")
	p.want(0, `"path":"script.sh"`, "", "session", "undo", "--json", "--force", turn)
	if text, err := os.ReadFile(file); string(text) != "old\n" {
		t.Errorf("after the undo the file is %q, %v", text, err)
	}
	if r := p.run("session", "undo", "fpt_zz"); strings.Contains(r.err, "session fpt_zz") || !strings.Contains(r.err, "no turn or file point has an id that begins with") {
		t.Errorf("an unknown point gives %q", r.err)
	}
}

// turnSession returns the session of a turn.
func (p *place) turnSession(turn string) string {
	p.t.Helper()
	var r protocol.TurnReport
	if err := json.Unmarshal([]byte(p.run("call", "turn/read", `{"turnId":"`+turn+`"}`).out), &r); err != nil {
		p.t.Fatal(err)
	}
	return string(r.SessionID)
}

func TestContinueTheSessionThatWasUsedLast(t *testing.T) {
	p := newPlace(t)
	p.want(console.ExitUsage, "", "omit --continue", "run", "-c", "hi")
	first := p.session()
	var r runResult
	session := func(args ...string) string {
		t.Helper()
		if err := json.Unmarshal([]byte(p.want(0, "", "", append([]string{"run", "--json"}, args...)...).out), &r); err != nil {
			t.Fatal(err)
		}
		return string(r.SessionID)
	}
	second := session("hello")
	p.want(0, "", "", "call", "graph/append", `{"sessionId":"`+first+`","nodes":[{"message":{"role":"event","parts":[{"kind":"text","text":"a program was here"}]}}]}`)
	p.want(0, first, "", "session") // the first in the list
	if got := session("-c", "again"); got != second {
		t.Errorf("issue/21-2 run -c continues %s, want %s", got, second)
	}
	fork := strings.TrimSpace(p.want(0, "ses_", "", "session", "fork", first).out)
	if got := session("--continue", "in the fork"); got != fork {
		t.Errorf("issue/21-2 after a fork, run -c continues %s, want %s", got, fork)
	}
	p.want(console.ExitUsage, "", "--continue cannot be combined with --session", "run", "-c", "--session", first, "x")
	p.want(console.ExitUsage, "", "lash chat needs a terminal", "-c")
}

func TestARunSaysOnceThatItReachedItsLimit(t *testing.T) {
	p := newPlace(t)
	r := p.want(console.ExitFailed, "", "lash: the turn failed (maxTurns)", "run", "--max-turns", "1", "touch it")
	if n := strings.Count(r.err, "budget of model calls"); n != 1 {
		t.Errorf("issue/21-3 the reason is printed %d times: %s", n, r.err)
	}
	p.want(console.ExitFailed, `"error":"the turn failed: The turn was stopped: it has used up its budget of model calls. (maxTurns)"`, "", "run", "--json", "--max-turns", "1", "touch it")
}
