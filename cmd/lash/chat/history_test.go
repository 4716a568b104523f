package chat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

// past is a daemon with a history: 12 turns of two items in pages of five turns, and the parts of an exported document.
type past struct {
	calls
	parts []string
	dry   protocol.SessionRewindResult
}

func (p *past) Call(ctx context.Context, method string, params, result any) error {
	switch r := result.(type) {
	case *protocol.SessionReadResult:
		end := 12
		fmt.Sscan(params.(protocol.SessionReadParams).Cursor, &end)
		for i := max(end-5, 0); i < end; i++ {
			r.Data = append(r.Data, turnItem(i, protocol.ItemUserMessage, "question"), turnItem(i, protocol.ItemAgentMessage, "answer"))
		}
		if end > 5 {
			r.NextCursor = fmt.Sprint(end - 5)
		}
	case *protocol.SessionExportResult:
		at := 0
		fmt.Sscan(params.(protocol.SessionExportParams).Cursor, &at)
		r.Text = p.parts[at]
		if at+1 < len(p.parts) {
			r.NextCursor = fmt.Sprint(at + 1)
		}
	case *protocol.SessionRewindResult:
		*r = p.dry
	case *protocol.SessionPointsResult:
		r.Data = []protocol.FilePoint{{ID: "fpt_1a", TurnID: "trn_10", Kind: protocol.PointTurn, Files: 1}, {ID: "fpt_2b"}, {ID: "fpt_2c"}}
	}
	return p.calls.Call(ctx, method, params, result)
}

func turnItem(i int, kind protocol.ItemKind, text string) protocol.Item {
	return protocol.Item{ID: protocol.ItemID(fmt.Sprint(kind, i)), TurnID: protocol.TurnID(fmt.Sprint("trn_", i)), Kind: kind, Text: fmt.Sprint(text, " ", i)}
}

// withPast returns a chat that attached to the last turn of a session.
func withPast(t *testing.T) (*ui, *past) {
	t.Helper()
	s := &past{}
	u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 12, style: markdown.Style{Width: 60}, connected: true, used: true, ticking: true, greeted: true}
	question, answer := turnItem(11, protocol.ItemUserMessage, "question"), turnItem(11, protocol.ItemAgentMessage, "answer")
	out := u.talk.attached(&protocol.SessionAttachResult{Session: protocol.Session{ID: "ses_1", Cwd: t.TempDir()}, Items: []protocol.Item{question, answer}, NextCursor: "11"})
	u.paper.writeAll(u.talk, out, u.style)
	return u, s
}

func TestTranscriptHasTheWholeHistory(t *testing.T) {
	u, _ := withPast(t)
	runs(u, openPager(u))
	types(u, "g")
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprint("› question ", i), fmt.Sprint("answer ", i))
	}
	var got []string
	for _, e := range u.talk.finished {
		if text := ansi.Strip(e.shown(u.style)); !strings.HasPrefix(text, "·") {
			got = append(got, text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("issue/21-2 transcript: it has %q", got)
	}
	if screen := onScreen(u); !strings.HasPrefix(screen, "› question 0\n") || strings.Contains(screen, "reading") {
		t.Errorf("issue/21-2 transcript: its beginning is\n%s", screen)
	}
}

func TestTranscriptStaysWhileEarlierMessagesArrive(t *testing.T) {
	u, _ := withPast(t)
	p := newPager(u)
	before, _, _ := p.view(u.style, 4)
	u.talk.precede([]protocol.Item{turnItem(9, protocol.ItemUserMessage, "question"), turnItem(10, protocol.ItemUserMessage, "question")})
	if after, _, _ := p.view(u.style, 4); !slices.Equal(before[:3], after[:3]) {
		t.Errorf("issue/21-2 transcript: the screen moved from %q to %q", before, after)
	}
}

func TestWhereAConversationEndsAfterItWentBack(t *testing.T) {
	u, _ := withPast(t)
	u.paper.take()
	runs(u, readWhere(u))
	want := "\n· The conversation now ends after this turn:\n│ › question 11\n│ answer 11"
	if got := ansi.Strip(strings.Join(u.paper.take(), "\n")); got != want {
		t.Errorf("issue/21-2 go back: it shows\n%s\nwant\n%s", got, want)
	}
	showWhere(u, whereMsg{of: "ses_1"})
	if got := ansi.Strip(strings.Join(u.paper.take(), "\n")); !strings.Contains(got, "· The conversation is empty now.") {
		t.Errorf("issue/21-2 go back: of an empty conversation it shows %q", got)
	}
}

func TestExportWritesANewFile(t *testing.T) {
	u, s := withPast(t)
	s.parts = []string{"# one\n", "two\n"}
	path := filepath.Join(u.talk.session.Cwd, "a.md")
	for _, want := range []string{"Wrote the session to " + path + " (10 bytes).", "Not exported: " + path + " already exists; name another file: /export FILE"} {
		if got := export(u, "a.md")(); got != saidMsg(want) {
			t.Errorf("issue/21-2 export: it says %q, want %q", got, want)
		}
	}
	if data, err := os.ReadFile(path); string(data) != "# one\ntwo\n" {
		t.Errorf("issue/21-2 export: the file has %q (%v)", data, err)
	}
	if export(u, "b.json")(); !strings.Contains(s.made[len(s.made)-1], `"format":"json"`) {
		t.Errorf("issue/21-2 export: it calls %q", s.made)
	}
}

func TestUndoTakesTheBeginningOfAnID(t *testing.T) {
	for point, want := range map[string]string{"fpt_1": `"toPoint":"fpt_1a"`, "fpt_2": "2 file points have an id that begins with", "fpt_3": "no file point has an id that begins with"} {
		u, s := withPast(t)
		said := fmt.Sprint(u.undo(point)())
		if got := said + strings.Join(s.made, "\n"); !strings.Contains(got, want) {
			t.Errorf("issue/21-2 undo: of %s it says and calls %q, want %q", point, got, want)
		}
	}
}

func TestDiffBelowACard(t *testing.T) {
	long := "--- a/n.md\n+++ b/n.md\n@@ -0,0 +1,20 @@\n" + strings.Repeat("+line\n", 20)
	for _, c := range []struct{ diff, want string }{
		{"--- a/a.go\n+++ b/a.go\n@@ -9,2 +9 @@ func f() {\n-one\n-two\n+x\n@@ -30 +29 @@\n-y\n+z\n", "   9 - one\n  10 - two\n   9 + x\n  ⋮\n  30 - y\n  29 + z"},
		{long, "   1 + line\n"},
	} {
		item := callItem("edit", `{}`, &protocol.ToolOutput{Change: &protocol.FileChange{Path: "a.go", Diff: c.diff}}, 3)
		got := ansi.Strip(strings.Join(changeLines(item, markdown.Style{Width: 60}), "\n"))
		if c.diff != long && got != c.want || c.diff == long && (strings.Count(got, " + line\n") != 12 || !strings.HasSuffix(got, "\n  … 8 more lines, Ctrl-T")) {
			t.Errorf("issue/21-2 diff: it is\n%s\nwant\n%s", got, c.want)
		}
	}
}

func TestListsForAScreenReader(t *testing.T) {
	u, s := withPast(t)
	u.reader, u.paper.plain = &reader{opened: true}, true
	s.dry = protocol.SessionRewindResult{Files: []protocol.FileRewind{{Path: "a.txt", Conflict: protocol.ConflictChanged}}}
	said := func() string { return ansi.Strip(strings.Join(u.paper.take(), "\n")) }
	said()
	for _, c := range []struct{ enters, says string }{
		{"/turns", "Turns of this session, newest first.\n1. question 11, "},
		{"2", "Turn: question 10\n1. Print the whole turn\n2. Continue in a copy"},
		{"3", "this turn and 1 later one"},
	} {
		if types(u, c.enters, "enter"); true {
			if got := said(); !strings.Contains(got, c.says) {
				t.Errorf("issue/21-2 reader: after %q it says\n%s\nwant\n%s", c.enters, got, c.says)
			}
		}
	}
	types(u, "1", "enter")
	if made := strings.Join(s.made, "\n"); !strings.Contains(made, `"toTurn":"trn_10","files":"also","force":true`) {
		t.Errorf("issue/21-2 reader: it calls %s", made)
	}
	types(u, "/turns", "enter", "hello", "enter", "1", "enter")
	if made := strings.Join(s.made, "\n"); !strings.Contains(made, `"text":"hello"`) || !strings.Contains(made, `"text":"1"`) {
		t.Errorf("issue/21-2 reader: a text does not close the list: %s", made)
	}
}

func TestStatusLineFits(t *testing.T) {
	parts := []string{"idle", "model", "no sandbox", "a long title of a session"}
	for width, want := range map[int]string{60: "idle · model · no sandbox · a long title of a session", 40: "idle · model · no sandbox · a long titl…", 30: "idle · model · no sandbox", 12: "idle · model", 3: "id…"} {
		if got := ansi.Strip(fitted(parts, width)); got != want {
			t.Errorf("issue/21-2 status: in %d columns it is %q, want %q", width, got, want)
		}
	}
}

func TestCursorRestsWhileTheAgentWorks(t *testing.T) {
	u, _ := withPast(t)
	if _, x, _ := live(u); x < 0 {
		t.Error("issue/21-2 cursor: it is hidden in an idle session")
	}
	u.talk.turn = "trn_12"
	if _, x, _ := live(u); x >= 0 {
		t.Error("issue/21-2 cursor: it is shown in the empty input while the agent works")
	}
	u.in.Set("text")
	if _, x, _ := live(u); x != 6 {
		t.Errorf("issue/21-2 cursor: it is at %d while the user types", x)
	}
}
