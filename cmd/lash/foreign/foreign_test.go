package foreign

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

// lines describes nodes: turn, role and parts.
func lines(nodes []protocol.Node) (all []string) {
	for _, n := range nodes {
		if n.FrameOpen != nil {
			all = append(all, "frame "+n.FrameOpen.Reason)
			continue
		}
		var line strings.Builder
		line.WriteString(strings.TrimPrefix(string(n.TurnID), "trn_") + " " + string(n.Message.Role))
		for _, p := range n.Message.Parts {
			line.WriteString(" | " + describe(p))
		}
		all = append(all, line.String())
	}
	return all
}

func describe(p protocol.Part) string {
	switch {
	case p.Call != nil:
		return fmt.Sprintf("call %s %s %s", p.Call.CallID, p.Call.Name, p.Call.Args)
	case p.Result != nil:
		out := p.Result.Output
		return fmt.Sprintf("result %s %s %s %q %d", p.Result.CallID, p.Result.Name, out.Status, out.Text, len(out.Attachments))
	case p.Attachment != nil:
		return "file " + p.Attachment.Type
	}
	return fmt.Sprintf("%s %q", p.Kind, p.Text)
}

// converted converts a file of testdata.
func converted(t *testing.T, name string) *Session {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Convert(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClaude(t *testing.T) {
	s := converted(t, "claude.jsonl")
	want := []string{
		`1 user | text "Fix the parser"`,
		`1 assistant | reasoning "I look first." | commentary "I read both files." | call toolu_1 Read {"file_path":"/w/project/a.go"} | call toolu_2 Bash {"command":"go test ./..."}`,
		`1 user | result toolu_1 Read success "package a" 0 | result toolu_2 Bash failure "exit 1" 1`,
		`1 assistant | prose "It is fixed."`,
		`1 event | text "<local-command-caveat>local</local-command-caveat>"`,
		`frame compaction`,
		` user | text "Summary: the parser was fixed."`,
		`2 user | text "And now?" | text "[A file (image/png) was not imported.]"`,
		`2 assistant | call toolu_3 Bash {"command":"sleep 100"}`,
		`2 user | result toolu_3 Bash cancelled "The session has no result of this call." 0`,
		`2 event | text "[Request interrupted by user for tool use]"`,
	}
	if got := lines(s.Nodes); !cmp.Equal(got, want) {
		t.Errorf("part/13 a session of Claude Code: %s", cmp.Diff(want, got))
	}
	if s.Title != "The parser" || s.Version != "2.0.77" || s.Cwd != "/w/project" || s.Agent != Claude || s.Nodes[0].AtMs != 1767323045000 {
		t.Errorf("part/13 %+v", s)
	}
}

func TestCodex(t *testing.T) {
	s := converted(t, "codex.jsonl")
	want := []string{
		` event | text "<permissions instructions>be careful</permissions instructions>"`,
		` event | text "<environment_context><cwd>/w/project</cwd></environment_context>"`,
		`1 user | text "Fix the parser" | file image/gif`,
		`1 assistant | reasoning "**Looking**" | commentary "I run the tests." | call call_1 shell_command {"command":"go test ./..."} | call call_2 apply_patch {"input":"*** Begin Patch\n*** End Patch\n"}`,
		`1 user | result call_1 shell_command failure "FAIL" 0 | result call_2 apply_patch success "Success." 0`,
		`1 assistant | call call_3 local_shell {"type":"exec","command":["ls"]}`,
		`1 user | result call_3 local_shell failure "a.go" 0`,
		`1 assistant | call web_search_1 web_search {"type":"search","query":"parser"}`,
		`1 user | result web_search_1 web_search success "" 0`,
		`1 assistant | prose "It is fixed."`,
		`frame compaction`,
		` user | text "Summary: the parser was fixed."`,
		`2 user | text "And now?"`,
		`2 assistant | call call_1 shell_command {"input":"not JSON"}`,
		`2 user | result call_1 shell_command cancelled "The session has no result of this call." 0`,
	}
	if got := lines(s.Nodes); !cmp.Equal(got, want) {
		t.Errorf("part/13 a session of Codex: %s", cmp.Diff(want, got))
	}
	if s.Version != "0.77.0" || s.Cwd != "/w/project" || s.Agent != Codex || s.FirstInput() != "Fix the parser" {
		t.Errorf("part/13 %+v", s)
	}
	old := converted(t, "codex-old.jsonl")
	want = []string{
		` event | text "<environment_context>\n<cwd>/w</cwd></environment_context>"`,
		`1 user | text "Hello"`,
		`1 assistant | call call_1 shell {"command":["ls"]}`,
		`1 user | result call_1 shell success "a.go" 0`,
		`1 assistant | prose "One file."`,
	}
	if got := lines(old.Nodes); !cmp.Equal(got, want) {
		t.Errorf("part/13 an old session of Codex: %s", cmp.Diff(want, got))
	}
}

func TestOtherFiles(t *testing.T) {
	for _, text := range []string{"", "hello", "{}", `{"a":1}` + "\n" + `{"b":2}`, "[]", "\x00"} {
		if _, err := Convert([]byte(text)); !errors.Is(err, ErrUnknown) {
			t.Errorf("part/13 %q: %v", text, err)
		}
	}
	line := `{"type":"user","sessionId":"x","uuid":"u","message":{"content":"x"}}` + "\n"
	for text, want := range map[string]string{
		line + "{oops\n": "line 2: ", line + `{"type":"user","uuid":"v","message":{"content":5}}` + "\n": "line 2: ",
		`{"type":"mode","sessionId":"x"}` + "\n": "this Claude Code session has no messages",
	} {
		if _, err := Convert([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("part/13 %q: %v, want %s", text, err, want)
		}
	}
	if agent, err := Recognize([]byte(`{"format":"lashd session","version":1`)); agent != Lashd || err != nil {
		t.Errorf("part/13 a document is of %q, %v", agent, err)
	}
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	put := func(from string, to ...string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(append([]string{home}, to...)...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("claude.jsonl", ".claude", "projects", "-w-project", "1.jsonl")
	put("claude.jsonl", ".claude", "projects", "-w-other", "2.jsonl")
	put("codex.jsonl", ".codex", "sessions", "2026", "01", "02", "rollout-2026-01-02T03-04-05-x.jsonl")
	put("codex.jsonl", ".codex", "sessions", "2026", "01", "02", "history.jsonl")
	found, err := DefaultPlaces(func(string) string { return "" }, home).Find("/w/project")
	if err != nil || len(found) != 2 {
		t.Fatalf("part/13 found %+v, %v", found, err)
	}
	for _, f := range found {
		want := map[Agent]string{Claude: "The parser 2.0.77 1.jsonl", Codex: "Fix the parser 0.77.0 rollout-2026-01-02T03-04-05-x.jsonl"}[f.Agent]
		if got := f.Title + " " + f.Version + " " + filepath.Base(f.Path); got != want {
			t.Errorf("part/13 found %q, want %q", got, want)
		}
	}
	if found, err := (Places{Claude: filepath.Join(home, "none"), Codex: filepath.Join(home, "none")}).Find("/w/project"); err != nil || len(found) != 0 {
		t.Errorf("part/13 without files: %v, %v", found, err)
	}
}

// FuzzConvert looks for files that make the conversion panic, or nodes with calls and results that do not match.
func FuzzConvert(f *testing.F) {
	for _, name := range []string{"claude.jsonl", "codex.jsonl", "codex-old.jsonl"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Convert(text)
		if err != nil {
			return
		}
		open := 0
		for _, n := range s.Nodes {
			if n.Message == nil {
				continue
			}
			for _, p := range n.Message.Parts {
				if p.Call != nil {
					open++
				}
				if p.Result != nil {
					open--
				}
			}
		}
		if open != 0 {
			t.Errorf("%d calls without a result: %v", open, lines(s.Nodes))
		}
		if _, err := s.Document(); err != nil {
			t.Error(err)
		}
	})
}
