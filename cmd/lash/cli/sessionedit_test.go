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

func TestSessionCommands(t *testing.T) {
	p := newPlace(t)
	id := p.session()
	p.want(0, "hello\n", "", "run", "--session", id, "and a zeppelin")
	t.Run("issue/21-3 session rename sets the title", func(t *testing.T) {
		p.want(0, "", "lash: renamed "+id[:noteID]+` to "The first flight"`, "session", "rename", id[:20], "The", "first", "flight")
		p.want(0, "The first flight", "", "session")
		p.want(console.ExitUsage, "", "see lash session rename --help", "session", "rename", id)
		p.want(console.ExitUsage, "", "the title is empty", "session", "rename", id, " ")
	})
	t.Run("issue/21-3 session search finds messages and titles, as a table and as JSON", func(t *testing.T) {
		if r := p.want(0, id, "", "session", "search", "zeppel"); !strings.Contains(r.out, "user") || !strings.Contains(r.out, "and a zeppelin") {
			t.Errorf("it prints %q", r.out)
		}
		p.want(0, "title", "", "session", "search", "flight")
		var found foundMatches
		if r := p.run("session", "search", "--json", "zeppelin"); json.Unmarshal([]byte(r.out), &found) != nil || len(found.Matches) != 1 || string(found.Matches[0].SessionID) != id {
			t.Errorf("it prints %q", r.out)
		}
		if r := p.want(0, "", "no session has these words", "session", "search", "airship"); r.out != "" {
			t.Errorf("it prints %q", r.out)
		}
		if r := p.want(0, "", "", "session", "search", "--json", "airship"); r.out != `{"matches":[]}`+"\n" {
			t.Errorf("it prints %q", r.out)
		}
	})
	t.Run("issue/21-3 session fork copies a session up to a turn, and prints the id of the copy", func(t *testing.T) {
		var turns protocol.TurnListResult
		if r := p.run("call", "turn/list", `{"sessionId":"`+id+`"}`); json.Unmarshal([]byte(r.out), &turns) != nil || len(turns.Data) != 2 {
			t.Fatalf("turns: %q", r.out)
		}
		first := min(turns.Data[0].TurnID, turns.Data[1].TurnID)
		whole := strings.TrimSpace(p.want(0, "ses_", "", "session", "fork", id).out)
		part := strings.TrimSpace(p.want(0, "ses_", "", "session", "fork", id, "--at", string(first), "--title", "part").out)
		p.want(0, "zeppelin", "", "session", "show", whole)
		if r := p.want(0, "hello", "", "session", "show", part); strings.Contains(r.out, "zeppelin") || !strings.Contains(r.out, "part") {
			t.Errorf("the part shows %q", r.out)
		}
		p.want(console.ExitFailed, "", `no turn has an id that begins with "trn_none"`, "session", "fork", id, "--at", "trn_none")
	})
	t.Run("issue/21-3 session export writes Markdown or JSON to stdout or to a new file", func(t *testing.T) {
		p.want(0, "and a zeppelin", "", "session", "export", id)
		var whole struct{ Session protocol.Session }
		if r := p.run("session", "export", id, "--format", "json"); json.Unmarshal([]byte(r.out), &whole) != nil || string(whole.Session.ID) != id {
			t.Errorf("JSON: %.300q", r.out)
		}
		file := filepath.Join(p.work, "export.md")
		p.want(0, "", "wrote "+file, "session", "export", id, "-o", file)
		text, err := os.ReadFile(file)
		if err != nil || string(text) != p.run("session", "export", id).out {
			t.Errorf("the file has %.300q, %v", text, err)
		}
		p.want(console.ExitFailed, "", "already exists", "session", "export", id, "-o", file)
		other := filepath.Join(p.work, "other.md")
		p.want(console.ExitFailed, "", "not found", "session", "export", "ses_"+strings.Repeat("0", 32), "-o", other)
		if _, err := os.Stat(other); err == nil {
			t.Error("a failed export leaves a file")
		}
	})
}
