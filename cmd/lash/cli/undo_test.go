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
	p.want(0, "", "", "run", "a newer session")
	p.want(0, `"path":"script.sh"`, "", "session", "undo", "--json", "--force", turn)
	if text, err := os.ReadFile(file); string(text) != "old\n" {
		t.Errorf("after the undo the file is %q, %v", text, err)
	}
	if r := p.run("session", "undo", "fpt_zz"); strings.Contains(r.err, "session fpt_zz") || !strings.Contains(r.err, "no turn or file point has an id that begins with") {
		t.Errorf("an unknown point gives %q", r.err)
	}
}
