package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
)

// exported returns the JSON document of a session.
func (p *place) exported(id string) (text string, d protocol.SessionDocument) {
	p.t.Helper()
	text = p.want(0, "", "", "session", "export", id, "--format", "json").out
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		p.t.Fatalf("%v in %.300s", err, text)
	}
	return text, d
}

// imported imports a document and returns the id of the session.
func (p *place) imported(text string, args ...string) string {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "a.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(p.want(0, "ses_", "to continue: lash chat ses_", append([]string{"session", "import", file}, args...)...).out)
}

// partsOf returns the parts of a message, if there is one.
func partsOf(m *protocol.Message) []protocol.Part {
	if m == nil {
		return nil
	}
	return m.Parts
}

// anyID matches the ids that an import replaces. Each is replaced by its kind and the order in which it occurs.
var anyID = regexp.MustCompile(`\b(nod|trn|inp)_[0-9a-f]+\b`)

// contentOf returns the nodes of a document as JSON lines, without what an import changes: ids, decisions over calls and the
// settings of frames.
func contentOf(d protocol.SessionDocument) []string {
	var lines []string
	names := map[string]string{}
	for _, n := range d.Nodes {
		if n.FrameOpen != nil {
			n.FrameOpen.Config = protocol.Config{}
		}
		for i := range partsOf(n.Message) {
			n.Message.Parts[i].Decision = nil
		}
		if n.Message != nil && n.Message.Origin != nil {
			n.Message.Origin.InputID = ""
		}
		line, _ := json.Marshal(n)
		lines = append(lines, anyID.ReplaceAllStringFunc(string(line), func(id string) string {
			if names[id] == "" {
				names[id] = fmt.Sprint(id[:4], len(names))
			}
			return names[id]
		}))
	}
	return lines
}

func TestSessionImport(t *testing.T) {
	p, id, file := threeTurns(t)
	picture := filepath.Join(p.work, "notes.txt")
	if err := os.WriteFile(picture, []byte(strings.Repeat("many notes\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.want(0, "hello\n", "", "run", "--session", id, "--attach", picture, "and this?")
	text, original := p.exported(id)
	t.Run("issue/21-3 an exported session is imported with equal content, and its calls do not run again", func(t *testing.T) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		copied := p.imported(text)
		if copied == id {
			t.Fatal("it has the id of the original")
		}
		_, again := p.exported(copied)
		if want, got := contentOf(original), contentOf(again); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("the import ran a call")
		}
		p.want(0, "hello\n", "", "run", "--session", copied, "go on")
		if got := p.turnsOf(copied); len(got) != 5 || got[1].Input != "change a file\nwith two lines" || got[1].State != "" || got[4].State != "completed" {
			t.Errorf("turns: %v", numbered(got))
		}
		p.want(0, "", "a copy with turns 3 to 5", "session", "rewind", copied, "--to", "3")
	})
	t.Run("issue/21-3 files of a session that is not here are replaced by text", func(t *testing.T) {
		other := p.imported(strings.ReplaceAll(text, id, "ses_"+strings.Repeat("0", 32)), "--title", "from elsewhere")
		p.want(0, "[The file \"notes.txt\" (text/plain) was not imported.]", "", "session", "show", other)
		p.want(0, "from elsewhere", "", "session")
	})
	t.Run("issue/21-3 a document that is not valid is refused with the place, and creates nothing", func(t *testing.T) {
		before := p.run("session", "--json").out
		cut := func(from, to string) string {
			if !strings.Contains(text, from) {
				t.Fatalf("the document has no %s: %s", from, text)
			}
			return strings.Replace(text, from, to, 1)
		}
		for bad, want := range map[string]string{
			text[:len(text)/2]:                             "parameter document is not valid JSON: line ",
			cut(`"version":1`, `"version":2`):              "parameter document.version must be 1, not 2",
			cut(`"lashd session"`, `"gpt"`):                `parameter document.format must be "lashd session", not "gpt"`,
			cut(`"role":"user"`, `"role":"root"`):          `parameter document.nodes.1.message.role must be user, assistant, system or event, not "root"`,
			cut(`"role":"user"`, `"rôle":"user"`):          "parameter document.nodes.1.message.rôle is not valid: ",
			cut(`"kind":"toolResult"`, `"kind":"text"`):    "must have no call, result or attachment",
			cut(`"toolCall","call":{`, `"text","calls":{`): "document.nodes.",
			"":               "it is not a session that lash session export --format json, Claude Code or Codex has written",
			`{"format":"x"}`: "parameter document.",
		} {
			file := filepath.Join(t.TempDir(), "bad.json")
			if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			p.want(console.ExitFailed, "", want, "session", "import", file)
		}
		if after := p.run("session", "--json").out; after != before {
			t.Errorf("sessions before: %s\nafter: %s", before, after)
		}
	})
	t.Run("issue/21-3 a document comes in parts, a repeated request creates one session, and a gap is refused", func(t *testing.T) {
		request := func(params map[string]any, want int) (r protocol.SessionImportResult) {
			t.Helper()
			body, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			if out := p.want(want, "", "", "call", "session/import", string(body)).out; want == 0 && json.Unmarshal([]byte(out), &r) != nil {
				t.Fatalf("it answers %s", out)
			}
			return r
		}
		half := len(text) / 2
		request(map[string]any{"uploadId": "u", "document": text[:half]}, 0)
		request(map[string]any{"uploadId": "u", "document": text[half:], "offset": half + 1}, console.ExitFailed)
		if r := request(map[string]any{"uploadId": "u", "document": text[:half]}, 0); r.Received != int64(half) || r.Session != nil {
			t.Errorf("a repeated part answers %+v", r)
		}
		last := map[string]any{"uploadId": "u", "document": text[half:], "offset": half, "done": true, "cwd": p.work, "idempotencyKey": "once"}
		first, again := request(last, 0), request(last, 0)
		if first.Session == nil || again.Session == nil || first.Session.ID != again.Session.ID || !again.Duplicate || again.Session.TurnIndex != 4 {
			t.Errorf("first %+v, again %+v", first, again)
		}
	})
	t.Run("issue/21-3 no settings come with a document", func(t *testing.T) {
		loose := p.want(0, "", "", "run", "--json", "--allow", "--sandbox", "fullAccess", "hi").out
		var r runResult
		if err := json.Unmarshal([]byte(loose), &r); err != nil {
			t.Fatal(err)
		}
		text, d := p.exported(string(r.SessionID))
		if d.Nodes[0].FrameOpen.Config.Approval.Mode != protocol.ApproveAllow {
			t.Fatalf("the original does not allow everything: %s", text)
		}
		copied := p.imported(text)
		again, d := p.exported(copied)
		if mode := d.Nodes[0].FrameOpen.Config.Approval.Mode; mode == protocol.ApproveAllow || strings.Contains(again, "fullAccess") {
			t.Errorf("the import has mode %q: %s", mode, again)
		}
	})
}

func TestForksAreToldApart(t *testing.T) {
	p, id, _ := threeTurns(t)
	fork := strings.TrimSpace(p.want(0, "ses_", "", "session", "fork", id, "--at", "2").out)
	again := strings.TrimSpace(p.want(0, "ses_", "", "session", "fork", fork).out)
	var all []protocol.Session
	if err := json.Unmarshal([]byte(p.run("session", "--json").out), &all); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{id: "3 hi", fork: "2 hi (fork)", again: "2 hi (fork 2)"}
	for _, s := range all {
		if got := fmt.Sprint(s.TurnIndex, " ", s.Title); got != want[string(s.ID)] {
			t.Errorf("issue/21-3 session %s: %q, want %q", s.ID, got, want[string(s.ID)])
		}
	}
}

func TestImportSessionsOfOtherAgents(t *testing.T) {
	p := newPlace(t)
	user := filepath.Join(filepath.Dir(p.home), "user")
	put := func(from string, to ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", "foreign", "testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(append([]string{user}, to...)...)
		text = []byte(strings.ReplaceAll(string(text), "/w/project", p.work))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p.want(0, "", "Claude Code and Codex have no session files of "+p.work, "session", "import")
	claude := put("claude.jsonl", ".claude", "projects", regexp.MustCompile("[^a-zA-Z0-9]").ReplaceAllString(p.work, "-"), "1.jsonl")
	codex := put("codex.jsonl", ".codex", "sessions", "2026", "01", "02", "rollout-2026-01-02T03-04-05-x.jsonl")
	if r := p.want(0, "Claude Code 2.0.77, ", "to import one: lash session import FILE", "session", "import"); !strings.Contains(r.out, ": The parser\n  "+claude+"\n") || !strings.Contains(r.out, ": Fix the parser\n  "+codex+"\n") {
		t.Errorf("part/13 the list is %s", r.out)
	}
	p.want(0, `"agent":"Codex","version":"0.77.0"`, "", "session", "import", "--json")
	for file, want := range map[string][]string{
		claude: {`[1,"Fix the parser","","",0,0,0,false]`, `[2,"And now?\n[A file (image/png) was not imported.]","","",0,0,0,false]`},
		codex:  {`[1,"Fix the parser","","",0,0,0,false]`, `[2,"And now?","","",0,0,0,false]`},
	} {
		id := strings.TrimSpace(p.want(0, "ses_", "imported 2 turns", "session", "import", file).out)
		if got := numbered(p.turnsOf(id)); !cmp.Equal(got, want) {
			t.Errorf("part/13 %s: %s", file, cmp.Diff(want, got))
		}
		p.want(0, "hello\n", "", "run", "--session", id, "go on")
		if _, d := p.exported(id); d.Nodes[0].FrameOpen == nil || d.Nodes[0].FrameOpen.Config.Model.ID == "" {
			t.Errorf("part/13 %s: the first node is %+v", file, d.Nodes[0])
		}
	}
	p.want(0, "The parser", "", "session")
	broken := filepath.Join(p.work, "broken.jsonl")
	if err := os.WriteFile(broken, []byte("{\"type\":\"user\",\"sessionId\":\"x\"}\n{oops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.want(console.ExitFailed, "", "nothing was imported from "+broken+": line 2: ", "session", "import", broken)
	p.want(console.ExitFailed, "", "it is not a session that lash session export", "session", "import", filepath.Join(p.home, "config.toml"))
}
