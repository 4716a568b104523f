package search

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// open returns a store that runs until the test ends.
func open(t testing.TB) *persistence.Store {
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

func commit(t testing.TB, s *persistence.Store, c *persistence.Commit) {
	t.Helper()
	c.AtMs = 1
	if _, err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// session creates a session. A parent makes it the session of a subagent.
func session(t testing.TB, s *persistence.Store, id protocol.SessionID, cwd, title string, parent protocol.SessionID) {
	t.Helper()
	relation := protocol.Relation{Kind: protocol.RelationRoot}
	if parent != "" {
		relation = protocol.Relation{Kind: protocol.RelationChild, Parent: parent}
	}
	commit(t, s, &persistence.Commit{Session: id, Create: &persistence.NewSession{Title: title, Cwd: cwd, Relation: relation}})
}

// inputs stores inputs with these texts in a session.
func inputs(t testing.TB, s *persistence.Store, id protocol.SessionID, texts ...string) {
	t.Helper()
	c := &persistence.Commit{Session: id}
	for _, text := range texts {
		c.Inputs = append(c.Inputs, input(text))
	}
	commit(t, s, c)
}

var made int

// input is an input of a person.
func input(text string) protocol.QueuedInput {
	made++
	return protocol.QueuedInput{
		ID: protocol.InputID(fmt.Sprint("inp_", made)), TurnID: "trn", State: protocol.InputCompleted,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}},
	}
}

// sent reads all pages of inputs, and returns the texts separated by spaces and the pages by bars.
func sent(t testing.TB, s *persistence.Store, cwd string, limit int) string {
	t.Helper()
	var pages []string
	for cursor, more := "", true; more; more = cursor != "" {
		r, err := New(s, slog.New(slog.DiscardHandler)).Inputs(t.Context(), &protocol.SessionInputsParams{Cwd: cwd, Limit: limit, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, in := range r.Data {
			texts = append(texts, in.Text)
		}
		pages, cursor = append(pages, strings.Join(texts, " ")), r.NextCursor
	}
	return strings.Join(pages, " | ")
}

func TestInputs(t *testing.T) {
	t.Run("part/12 inputs of a directory are listed newest first, over all its sessions", func(t *testing.T) {
		s := open(t)
		session(t, s, "ses_a", "/w", "", "")
		session(t, s, "ses_b", "/w", "", "")
		session(t, s, "ses_c", "/other", "", "")
		for i := range 3 {
			inputs(t, s, "ses_a", fmt.Sprint("a", i))
			inputs(t, s, "ses_b", fmt.Sprint("b", i))
			inputs(t, s, "ses_c", fmt.Sprint("c", i))
		}
		if got := sent(t, s, "/w", 500); got != "b2 a2 b1 a1 b0 a0" {
			t.Errorf("inputs of /w: %s", got)
		}
		if got := sent(t, s, "", 4); got != "c2 b2 a2 c1 | b1 a1 c0 b0 | a0" {
			t.Errorf("all inputs: %s", got)
		}
		if got := sent(t, s, "/nowhere", 4); got != "" {
			t.Errorf("inputs of another directory: %s", got)
		}
	})
	t.Run("part/12 a text is listed once, at its newest place, on one page only", func(t *testing.T) {
		s := open(t)
		session(t, s, "ses_a", "/w", "", "")
		inputs(t, s, "ses_a", "x", "y", "x", "z", " y\n", "z", "w")
		if got := sent(t, s, "/w", 2); got != "w z | y x" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("part/12 inputs of plugins, wakes, subagents and other sessions are left out, and those without text", func(t *testing.T) {
		s := open(t)
		session(t, s, "ses_a", "/w", "", "")
		session(t, s, "ses_child", "/w", "", "ses_a")
		inputs(t, s, "ses_child", "task")
		byPlugin, wake, limited, image := input("plugin"), input("wake"), input("limited"), input("")
		byPlugin.Source, wake.Wake, limited.Ceiling = "plugin/key", &protocol.QueuedWake{}, &protocol.Ceiling{}
		image.Input = []protocol.InputPart{{Type: protocol.InputAttachment, Attachment: &protocol.Attachment{Type: "image/png", URL: "http://x/"}}}
		commit(t, s, &persistence.Commit{Session: "ses_a", Inputs: []protocol.QueuedInput{input("mine"), byPlugin, wake, limited, image}})
		if got := sent(t, s, "/w", 10); got != "mine" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("part/12 a page of large inputs ends at 1 MiB, and the next one continues", func(t *testing.T) {
		s := open(t)
		session(t, s, "ses_a", "/w", "", "")
		for i := range 5 {
			inputs(t, s, "ses_a", fmt.Sprint(i)+strings.Repeat("x", 400<<10))
		}
		if got := strings.ReplaceAll(sent(t, s, "/w", 10), "x", ""); got != "4 3 | 2 1 | 0" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("part/12 inputs of a deleted session are gone", func(t *testing.T) {
		s := open(t)
		session(t, s, "ses_a", "/w", "", "")
		session(t, s, "ses_b", "/w", "", "")
		inputs(t, s, "ses_a", "a")
		inputs(t, s, "ses_b", "b")
		commit(t, s, &persistence.Commit{Session: "ses_b", Delete: true})
		if got := sent(t, s, "/w", 10); got != "a" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("part/12 several reads reach inputs behind many repetitions", func(t *testing.T) {
		s := open(t)
		session(t, s, "ses_a", "/w", "", "")
		inputs(t, s, "ses_a", "first")
		for range 3 {
			again := make([]string, inputRead)
			for i := range again {
				again[i] = "again"
			}
			inputs(t, s, "ses_a", again...)
		}
		if got := sent(t, s, "/w", 10); got != "again first" {
			t.Errorf("got %s", got)
		}
	})
}

// BenchmarkInputs reads a page of the inputs of a directory with 1,000 sessions of 20 inputs each.
func BenchmarkInputs(b *testing.B) {
	s := open(b)
	for i := range 1000 {
		id := protocol.SessionID(fmt.Sprint("ses_", i))
		session(b, s, id, "/w", "", "")
		texts := make([]string, 20)
		for j := range texts {
			texts[j] = fmt.Sprint("fix the test ", i, j, strings.Repeat(" word", 60))
		}
		inputs(b, s, id, texts...)
	}
	for b.Loop() {
		if _, err := New(s, slog.New(slog.DiscardHandler)).Inputs(b.Context(), &protocol.SessionInputsParams{Cwd: "/w"}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestFirstInputs(t *testing.T) {
	t.Run("issue/21-3 a list of sessions has the beginning of the first text that a person sent", func(t *testing.T) {
		s := open(t)
		for _, id := range []protocol.SessionID{"ses_none", "ses_text", "ses_image", "ses_long"} {
			session(t, s, id, "/w", "", "")
		}
		wake, image := input("wake"), input("look at this")
		wake.Source = "task/1"
		picture := protocol.InputPart{Type: protocol.InputAttachment, Attachment: &protocol.Attachment{Type: "image/png", URL: "http://x/"}}
		image.Input = append([]protocol.InputPart{picture}, image.Input...)
		alone := input("")
		alone.Input = []protocol.InputPart{picture}
		commit(t, s, &persistence.Commit{Session: "ses_text", Inputs: []protocol.QueuedInput{wake, input(" first\n\tline "), input("second")}})
		commit(t, s, &persistence.Commit{Session: "ses_image", Inputs: []protocol.QueuedInput{alone, image}})
		inputs(t, s, "ses_long", strings.Repeat("é", 300_000))
		page, err := s.Sessions(t.Context(), persistence.SessionQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		want := map[protocol.SessionID]string{"ses_text": "first line", "ses_image": "look at this", "ses_long": strings.Repeat("é", 200)}
		for _, row := range page {
			if row.FirstInput != want[row.ID] {
				t.Errorf("%s: %q, want %q", row.ID, row.FirstInput, want[row.ID])
			}
		}
	})
}

// BenchmarkSessions reads pages of 50 and 200 of 5,000 sessions of 20 inputs each.
func BenchmarkSessions(b *testing.B) {
	s := open(b)
	for i := range 5000 {
		id := protocol.SessionID(fmt.Sprint("ses_", i))
		session(b, s, id, "/w", "a title", "")
		texts := make([]string, 20)
		for j := range texts {
			texts[j] = fmt.Sprint("fix the test ", i, j, strings.Repeat(" word", 60))
		}
		inputs(b, s, id, texts...)
	}
	for _, limit := range []int{50, 200} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Sessions(b.Context(), persistence.SessionQuery{Limit: limit}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
