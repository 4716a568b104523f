package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func open(t *testing.T) *persistence.Store {
	t.Helper()
	s, err := persistence.Open(t.Context(), persistence.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Durability: "OFF"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func commit(t *testing.T, s *persistence.Store, c *persistence.Commit) {
	t.Helper()
	c.AtMs = 1
	if _, err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

var made int

// node is a node of a message in a turn.
func node(turn string, role protocol.Role, parts ...protocol.Part) protocol.Node {
	made++
	return protocol.Node{
		ID: protocol.NodeID(fmt.Sprintf("nod_%d", made)), TurnID: protocol.TurnID(turn), AtMs: 1_700_000_000_000,
		Message: &protocol.Message{Role: role, Parts: parts},
	}
}

func user(turn, text string) protocol.Node {
	return node(turn, protocol.RoleUser, protocol.Part{Kind: protocol.PartText, Text: text})
}

func agent(turn, text string) protocol.Node {
	return node(turn, protocol.RoleAssistant, protocol.Part{Kind: protocol.PartProse, Text: text})
}

// called is a tool call and the node with its result.
func called(turn, id, tool, args string, output protocol.ToolOutput, ms int64) []protocol.Node {
	return []protocol.Node{
		node(turn, protocol.RoleAssistant, protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: protocol.CallID(id), Name: tool, Args: json.RawMessage(args)}}),
		node(turn, protocol.RoleUser, protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{CallID: protocol.CallID(id), Output: output, DurationMs: ms}}),
	}
}

// create creates a session with these nodes.
func create(t *testing.T, s *persistence.Store, id protocol.SessionID, title string, nodes ...protocol.Node) {
	t.Helper()
	made++
	frame := protocol.Node{ID: protocol.NodeID(fmt.Sprintf("nod_%d", made)), FrameOpen: &protocol.FrameOpen{Key: "initial", Reason: "initial"}}
	commit(t, s, &persistence.Commit{Session: id, Create: &persistence.NewSession{
		Title: title, Cwd: "/w", Relation: protocol.Relation{Kind: protocol.RelationRoot},
		Config: protocol.Config{Model: protocol.ModelSpec{ID: "m"}},
	}, Nodes: append([]protocol.Node{frame}, nodes...)})
}

// document reads all parts of an export. between runs after each part.
func document(t *testing.T, s *persistence.Store, p protocol.SessionExportParams, between func()) (text string, parts int) {
	t.Helper()
	for more := true; more; more = p.Cursor != "" {
		r, err := (&Exports{s}).Export(t.Context(), &p)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Text) > chunk || r.NextCursor != "" && len(r.Text) < chunk-4 {
			t.Errorf("part %d has %d bytes", parts, len(r.Text))
		}
		text, p.Cursor, parts = text+r.Text, r.NextCursor, parts+1
		between()
	}
	return text, parts
}

// exported is the JSON document.
type exported struct {
	Format  string           `json:"format"`
	Version int              `json:"version"`
	Session protocol.Session `json:"session"`
	Nodes   []protocol.Node  `json:"nodes"`
}

func TestMarkdown(t *testing.T) {
	t.Run("issue/21-3 a session is a document with its prompts, answers, calls and diffs", func(t *testing.T) {
		s := open(t)
		nodes := []protocol.Node{
			user("trn_1", "Fix the parser\n\nplease"),
			node("trn_1", protocol.RoleAssistant, protocol.Part{Kind: protocol.PartReasoning, Text: "secret thought"}, protocol.Part{Kind: protocol.PartCommentary, Text: "I look first."}),
		}
		nodes = append(nodes, called("trn_1", "c1", "shell", `{"command":"go  test\n./..."}`, protocol.ToolOutput{Status: protocol.OutputFailure, Text: "long output"}, 1234)...)
		nodes = append(nodes, called("trn_1", "c2", "edit", `{"path":"a.go","old":"x","new":"y"}`,
			protocol.ToolOutput{Status: protocol.OutputSuccess, Text: "ok", Change: &protocol.FileChange{Path: "a.go", Diff: "-x\n+```y\n", Added: 1, Removed: 1}}, 3)...)
		nodes = append(nodes, agent("trn_1", "It is **fixed**.\n"),
			node("trn_2", protocol.RoleUser, protocol.Part{Kind: protocol.PartText, Text: "and this?"}, protocol.Part{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Name: "a.png", Type: "image/png"}}),
			agent("trn_2", "Yes."), node("trn_2", protocol.RoleAssistant, protocol.Part{Kind: protocol.PartError, Text: "The turn\nwas stopped."}))
		create(t, s, "ses_a", " My  title\n", nodes...)
		want := "# My title\n\n- Session: `ses_a`\n- Directory: `/w`\n- Model: `m`\n- Started: 1970-01-01 00:00 UTC\n- Turns: 0\n" +
			"\n## 2023-11-14 22:13 UTC\n\n> Fix the parser\n> \n> please\n\nI look first.\n\n" +
			"- **shell** `go test ./...`: failed in 1.2 s\n\n" +
			"- **edit** `{\"path\":\"a.go\",\"old\":\"x\",\"new\":\"y\"}`: completed, `a.go` (+1 −1)\n\n````diff\n-x\n+```y\n````\n\nIt is **fixed**.\n" +
			"\n## 2023-11-14 22:13 UTC\n\n> and this?\n\n> File: `a.png`\n\nYes.\n\n*The turn was stopped.*\n"
		text, _ := document(t, s, protocol.SessionExportParams{SessionID: "ses_a", Format: protocol.ExportMarkdown}, func() {})
		if text != want {
			t.Error(cmp.Diff(want, text))
		}
		text, _ = document(t, s, protocol.SessionExportParams{SessionID: "ses_a", Format: protocol.ExportMarkdown, Reasoning: true}, func() {})
		if !strings.Contains(text, "\n<details><summary>Reasoning</summary>\n\nsecret thought\n\n</details>\n") {
			t.Errorf("no reasoning in %s", text)
		}
	})
	t.Run("issue/21-3 a page never ends between a call and its result, and a turn has one heading", func(t *testing.T) {
		for before := range 4 {
			s := open(t)
			var nodes []protocol.Node
			for i := range nodePage - 4 + before {
				nodes = append(nodes, agent("trn_1", fmt.Sprint("text ", i)))
			}
			nodes = append(nodes, called("trn_1", "c1", "shell", `{"command":"x"}`, protocol.ToolOutput{Status: protocol.OutputSuccess}, 1)...)
			create(t, s, "ses_a", "", append(nodes, agent("trn_1", "end"), agent("trn_1", "end"), agent("trn_1", "end"))...)
			text, _ := document(t, s, protocol.SessionExportParams{SessionID: "ses_a", Format: protocol.ExportMarkdown}, func() {})
			if !strings.Contains(text, "- **shell** `x`: completed\n") || strings.Count(text, "\n## ") != 1 || strings.Count(text, "\nend\n") != 3 || !strings.HasPrefix(text, "# Session of 1 January 1970\n") {
				t.Errorf("%d nodes: %s", len(nodes), text[max(0, len(text)-200):])
			}
		}
	})
}

func TestJSON(t *testing.T) {
	t.Run("issue/21-3 JSON has each node of the branch as it is stored, also of a fork", func(t *testing.T) {
		s := open(t)
		first := []protocol.Node{user("trn_1", "one"), agent("trn_1", "two"), agent("trn_1", "three")}
		create(t, s, "ses_a", "title", first...)
		source := &protocol.ForkSource{SessionID: "ses_a", Node: first[1].ID}
		commit(t, s, &persistence.Commit{Session: "ses_b", Create: &persistence.NewSession{Cwd: "/w", Relation: protocol.Relation{Kind: protocol.RelationFork, Source: source}, Source: source}})
		var more []protocol.Node
		for i := range 2*nodePage + 7 {
			more = append(more, agent("trn_2", fmt.Sprint("text ", i)))
		}
		commit(t, s, &persistence.Commit{Session: "ses_b", Nodes: more})
		for _, id := range []protocol.SessionID{"ses_a", "ses_b"} {
			text, _ := document(t, s, protocol.SessionExportParams{SessionID: id, Format: protocol.ExportJSON}, func() {})
			var got exported
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%v in %.300s", err, text)
			}
			if want := path(t, s, id); !cmp.Equal(got.Nodes, want) || got.Format != "lashd session" || got.Version != 1 || got.Session.ID != id {
				t.Errorf("%s: %d nodes, want %d\n%s", id, len(got.Nodes), len(want), cmp.Diff(want, got.Nodes))
			}
		}
	})
	t.Run("issue/21-3 a large session comes in parts of 1 MiB and ends where it ended at the first", func(t *testing.T) {
		s := open(t)
		create(t, s, "ses_a", "title")
		for i := range 12 {
			commit(t, s, &persistence.Commit{Session: "ses_a", Nodes: []protocol.Node{agent("trn", fmt.Sprint(i)), agent("trn", strings.Repeat("ü", 450<<10))}})
		}
		want := path(t, s, "ses_a")
		for _, format := range []protocol.ExportFormat{protocol.ExportJSON, protocol.ExportMarkdown} {
			p := protocol.SessionExportParams{SessionID: "ses_a", Format: format}
			whole, _ := document(t, s, p, func() {})
			text, parts := document(t, s, p, func() {
				commit(t, s, &persistence.Commit{Session: "ses_a", Nodes: []protocol.Node{agent("trn", "later")}})
			})
			if text != whole || parts < 10 {
				t.Errorf("%s: %d parts, %d bytes, want %d", format, parts, len(text), len(whole))
			}
			commit(t, s, &persistence.Commit{Session: "ses_a", Rewind: want[len(want)-1].ID})
		}
	})
	t.Run("issue/21-3 a session without history is a document too", func(t *testing.T) {
		s := open(t)
		commit(t, s, &persistence.Commit{Session: "ses_a", Create: &persistence.NewSession{Cwd: "/w", Relation: protocol.Relation{Kind: protocol.RelationRoot}}})
		text, _ := document(t, s, protocol.SessionExportParams{SessionID: "ses_a", Format: protocol.ExportJSON}, func() {})
		if !json.Valid([]byte(text)) {
			t.Error(text)
		}
	})
	t.Run("issue/21-3 a wrong format, session or cursor is refused", func(t *testing.T) {
		s := open(t)
		create(t, s, "ses_a", "")
		for _, p := range []protocol.SessionExportParams{{SessionID: "ses_a", Format: "html"}, {SessionID: "ses_a"}, {SessionID: "ses_a", Format: "json", Cursor: "x"}} {
			if _, err := (&Exports{s}).Export(t.Context(), &p); !isParam(err) {
				t.Errorf("%+v: %v", p, err)
			}
		}
		if _, err := (&Exports{s}).Export(t.Context(), &protocol.SessionExportParams{SessionID: "ses_x", Format: "json"}); !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("an unknown session: %v", err)
		}
	})
}

func isParam(err error) bool {
	_, ok := errors.AsType[*param.Error](err)
	return ok
}

// path reads the whole path of a session, oldest first.
func path(t *testing.T, s *persistence.Store, id protocol.SessionID) []protocol.Node {
	t.Helper()
	row, err := s.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	nodes, _, err := s.Path(t.Context(), persistence.Cursor{Branch: row.Branch, Generation: row.Head.Generation}, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return persistence.Reversed(nodes)
}
