package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

// callItem returns a call that has ended.
func callItem(tool, args string, out *protocol.ToolOutput, ms int64) *protocol.Item {
	status := protocol.ItemDone
	if out.Failure != nil {
		status = protocol.ItemFailed
	}
	return &protocol.Item{
		ID: protocol.ItemID("itm_" + tool), Kind: protocol.ItemToolCall, Status: status, Tool: tool, Args: json.RawMessage(args),
		Title: protocol.TitleOf(protocol.ToolCall{Name: tool, Args: json.RawMessage(args)}), Output: out, DurationMs: ms,
	}
}

func TestCards(t *testing.T) {
	style := markdown.Style{Width: 60}
	failed := &protocol.ToolOutput{Text: "read a: gone", Failure: &protocol.ToolFailure{Message: "read a: gone"}}
	for _, c := range []struct {
		item *protocol.Item
		want string
	}{
		{callItem("shell", `{"command":"ls"}`, &protocol.ToolOutput{Text: "a\nb\n[Exit code 0.]\n", Value: json.RawMessage(`{"exitCode":0}`)}, 1234), "✓ Ran ls · 1.2s · 2 lines"},
		{callItem("shell", `{"command":"go test"}`, &protocol.ToolOutput{Text: "a\nFAIL cart\n[Exit code 2.]\n", Value: json.RawMessage(`{"exitCode":2}`)}, 12), "✗ Ran go test · exit 2 · 12 ms · 2 lines\n  FAIL cart"},
		{callItem("shell", `{"command":"false"}`, &protocol.ToolOutput{Text: "[Exit code 1.]\n", Value: json.RawMessage(`{"exitCode":1}`)}, 1), "✗ Ran false · exit 1 · 1 ms"},
		{callItem("shell", `{"command":"wc -l a"}`, &protocol.ToolOutput{Text: "12 a\n[Exit code 0.]\n", Value: json.RawMessage(`{"exitCode":0}`)}, 3), "✓ Ran wc -l a · 3 ms · 12 a"},
		{callItem("read", `{"path":"a"}`, failed, 3), "✗ Read a · 3 ms\n  a: gone"},
		{callItem("edit", `{"path":"a.go","old":"x","new":"y"}`, &protocol.ToolOutput{Text: "ok", Change: &protocol.FileChange{Path: "a.go", Added: 3, Removed: 1}}, 3), "✓ Edited a.go +3 -1 · 3 ms"},
		{callItem("shell", `{"command":"`+strings.Repeat("long ", 40)+`"}`, &protocol.ToolOutput{}, 3), "✓ Ran " + strings.Repeat("long ", 9) + "… · 3 ms"},
		{callItem("update_plan", `{"steps":[{"text":"look","status":"completed"},{"text":"mend","status":"inProgress"}]}`, &protocol.ToolOutput{Text: "ok"}, 3), "✓ Updated plan: 1 of 2 done, now: mend"},
	} {
		if got := ansi.Strip(toolCall(c.item, style)); got != c.want {
			t.Errorf("issue/21-2 a card is\n%s\nwant\n%s", got, c.want)
		}
	}
}

func TestUnfoldedCall(t *testing.T) {
	item := callItem("edit", `{"path":"a.go","old":"one\ntwo","new":"x"}`, &protocol.ToolOutput{Text: "Replaced once.", Change: &protocol.FileChange{Path: "a.go", Diff: "--- a/a.go\n+++ b/a.go\n@@ -1,2 +1 @@\n-one\n-two\n+x\n", Added: 1, Removed: 2}}, 3)
	want := "✓ Edited a.go +1 -2 · 3 ms\n  path: a.go\n  old: \n    one\n    two\n  new: x\n  @@ -1,2 +1 @@\n  -one\n  -two\n  +x"
	if got := ansi.Strip(strings.Join(entry{item: item}.unfolded(markdown.Style{Width: 60}), "\n")); got != want {
		t.Errorf("issue/21-2 it is\n%s\nwant\n%s", got, want)
	}
}

func TestDecisionOfAnUnfoldedCall(t *testing.T) {
	why := protocol.ApprovalReason{By: protocol.DecidedBySandbox, Text: "It runs in the sandbox."}
	for want, d := range map[string]*protocol.CallDecision{
		"Allowed: It runs in the sandbox.": {Mode: protocol.ApproveAllow, Why: why},
		"Denied: It runs in the sandbox.":  {Mode: protocol.ApproveDeny, Why: why},
		"Not run: It cannot fit.":          {Mode: protocol.ApproveDeny, Why: protocol.ApprovalReason{By: protocol.DecidedByPreview, Text: "It cannot fit."}},
		"A person allowed it once. Reason for the question: It runs in the sandbox.":  {Mode: protocol.ApproveAllow, Why: why, Choice: protocol.ChooseAllowOnce, By: "cli_a"},
		"A person always allows it. Reason for the question: It runs in the sandbox.": {Mode: protocol.ApproveAllow, Why: why, Choice: protocol.ChooseAllowAlways, By: "cli_a"},
		"A person denied it.":            {Mode: protocol.ApproveDeny, Why: why, Choice: protocol.ChooseReject, By: "cli_a"},
		"A person denied it: Not today.": {Mode: protocol.ApproveDeny, Why: why, Choice: protocol.ChooseReject, By: "cli_a", Reason: "Not today."},
		"Denied, because no answer came in time. Reason for the question: It runs in the sandbox.": {Mode: protocol.ApproveDeny, Why: why, Choice: protocol.ChooseReject, By: "deadline"},
	} {
		item := callItem("shell", `{"command":"ls"}`, &protocol.ToolOutput{Text: "a\nb\n"}, 3)
		item.Decision = d
		if got := ansi.Strip(strings.Join(entry{item: item}.unfolded(markdown.Style{Width: 60}), "\n")); !strings.Contains(got, "\n  "+want+"\n  a") {
			t.Errorf("part11/3 the call is\n%s\nwithout %q", got, want)
		}
	}
}

// TestDeniedCall has the words of the person once, and not the message for the model.
func TestDeniedCall(t *testing.T) {
	out := protocol.Fail(protocol.FailPermission, "denied", "The call was not allowed: the approval request was denied, with this reason: Not today.", protocol.FromPolicy)
	item := callItem("shell", `{"command":"ls"}`, &out, 3)
	item.Decision = &protocol.CallDecision{Mode: protocol.ApproveDeny, Choice: protocol.ChooseReject, By: "cli_a", Reason: "Not today."}
	for _, got := range []string{toolCall(item, markdown.Style{Width: 90}), strings.Join(entry{item: item}.unfolded(markdown.Style{Width: 90}), "\n")} {
		if got = ansi.Strip(got); strings.Count(got, "Not today.") != 1 || strings.Contains(got, "not allowed") {
			t.Errorf("the call is\n%s", got)
		}
	}
}

// paged returns a chat with n calls whose transcript is open. Each call has 3 lines of output.
func paged(t testing.TB, n int) *ui {
	t.Helper()
	u := &ui{talk: newTranscript(), width: 60, height: 20, style: markdown.Style{Width: 60}}
	for i := range n {
		c := callItem("shell", fmt.Sprintf(`{"command":"run %d"}`, i), &protocol.ToolOutput{Text: fmt.Sprintf("first %d\nsecond %d\nthird %d\n", i, i, i)}, 5)
		c.ID = protocol.ItemID(fmt.Sprint("itm_", i))
		u.paper.writeAll(u.talk, u.talk.completed(c), u.style)
	}
	press(u, "ctrl+t")
	if u.over == nil {
		t.Fatal("the transcript does not open")
	}
	return u
}

// row returns a row of the transcript without styles.
func row(u *ui, i int) string { return ansi.Strip(rows(u)[i]) }

// rows returns the rows of the transcript.
func rows(u *ui) []string {
	all, _, _ := u.over.view(u.style, u.height)
	return all
}

func TestPager(t *testing.T) {
	u := paged(t, 5000)
	if got := row(u, 18); got != "" || row(u, 17) != "  third 4999" || !strings.Contains(row(u, 19), "end") {
		t.Errorf("issue/21-2 it opens with %q", rows(u))
	}
	press(u, "g")
	if got := row(u, 0); got != "✓ Ran run 0 · 5 ms · 3 lines" {
		t.Errorf("issue/21-2 g goes to %q", got)
	}
	press(u, "down", "down")
	if got := row(u, 0); got != "  second 0" {
		t.Errorf("issue/21-2 two rows below is %q", got)
	}
	press(u, "pgdown", "pgup")
	if got := row(u, 0); got != "  second 0" {
		t.Errorf("issue/21-2 a page down and up again is %q", got)
	}
	press(u, "/", "SECOND 77", "enter")
	if got := row(u, 0); got != "  second 77" {
		t.Errorf("issue/21-2 the search finds %q", got)
	}
	press(u, "n")
	if got := row(u, 0); got != "  second 770" {
		t.Errorf("issue/21-2 n finds %q", got)
	}
	press(u, "N", "N")
	if got := row(u, 0); got != "  second 779" || !strings.Contains(strings.Join(rows(u), "\n"), "\x1b[7msecond 77\x1b[m") {
		t.Errorf("issue/21-2 N goes on at the end and marks what it found: %q", rows(u))
	}
	press(u, "/", "zz", "enter")
	if got := row(u, 19); !strings.Contains(got, "Not found: zz") {
		t.Errorf("issue/21-2 a search that finds nothing says %q", got)
	}
	if n := len(u.over.(*pager).blocks); n > 200 {
		t.Errorf("issue/21-2 %d of 5,000 entries were rendered", n)
	}
	press(u, "G", "q")
	if u.over != nil {
		t.Error("issue/21-2 q does not close it")
	}
}

func TestPagerFollows(t *testing.T) {
	u := paged(t, 30)
	next := callItem("read", `{"path":"new"}`, &protocol.ToolOutput{}, 1)
	u.paper.writeAll(u.talk, u.talk.completed(next), u.style)
	if got := row(u, 17); got != "✓ Read new · 1 ms" {
		t.Errorf("issue/21-2 at its end it does not show a new call: %q", got)
	}
	press(u, "g")
	u.Update(tea.WindowSizeMsg{Width: 30, Height: 10})
	if got := row(u, 0); got != "✓ Ran run 0 · 5 ms · 3 lines" {
		t.Errorf("issue/21-2 after a resize it shows %q", got)
	}
}

func TestOutput(t *testing.T) {
	u := paged(t, 30)
	press(u, "q")
	for rest, want := range map[string]string{"": "✓ Ran run 29 · 5 ms · 3 lines", "20": "✓ Ran run 10 · 5 ms · 3 lines"} {
		output(u, rest)
		if got := strings.Join(rows(u), "\n"); !strings.Contains(ansi.Strip(got), want) {
			t.Errorf("issue/21-2 /output %s shows %s", rest, got)
		}
	}
	u.over, u.reader = nil, &reader{}
	u.paper.take()
	output(u, "2")
	if got := ansi.Strip(strings.Join(u.paper.take(), "|")); got != "|✓ Ran run 28 · 5 ms · 3 lines|  first 28|  second 28|  third 28" {
		t.Errorf("issue/21-2 for a screen reader /output prints %q", got)
	}
	if said, ok := output(u, "x")().(saidMsg); !ok || !strings.HasPrefix(string(said), "Usage: /output") {
		t.Errorf("issue/21-2 /output x says %q", said)
	}
}
