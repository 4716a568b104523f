package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"lashd/rpc/protocol"
)

// approvalOf returns an open approval that a person can answer in all ways.
func approvalOf(tool, args string, detail *protocol.ApprovalDetail) *protocol.Decision {
	return &protocol.Decision{
		ID: "dec_1", SessionID: "ses_1", Kind: protocol.DecisionApproval, Default: protocol.ChooseReject, ArgsHash: "hash", Detail: detail, DeadlineMs: 601_000, OpenedAtMs: 1000,
		Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject},
		Call:    &protocol.ToolCall{CallID: "call_1", Name: tool, Args: json.RawMessage(args)}, Prompt: "Allow the tool " + tool + " to run?",
	}
}

// because is why lashd asks in these tests.
var because = protocol.ApprovalReason{By: protocol.DecidedByRule, Text: "The rule `ask command go` of the user decides."}

// goTest is a command with widths.
func goTest() *protocol.Decision {
	return approvalOf("shell", `{"command":"go test ./... && <x>","workdir":"web","timeoutMs":5000}`, &protocol.ApprovalDetail{
		Command: &protocol.CommandDetail{Command: "go test ./... && <x>", Dir: "/work/web"}, Why: because, Editable: true,
		Widths: []protocol.ApprovalWidth{{Text: "commands that begin with go test", Rule: &protocol.ApprovalRule{}}, {Text: "commands that begin with go", Rule: &protocol.ApprovalRule{}}},
	})
}

// twoHunks is an edit with two hunks.
func twoHunks() *protocol.Decision {
	return approvalOf("edit", `{"path":"a.go"}`, &protocol.ApprovalDetail{Why: because, Editable: true, Files: []protocol.FilePreview{{
		Path: "a.go", Kind: protocol.PreviewChange, Added: 2, Removed: 2, Hunks: []protocol.Hunk{
			{OldStart: 9, OldLines: 2, NewStart: 9, NewLines: 2, Text: " func f() {\n-\treturn 1\n+\treturn 2\n"},
			{OldStart: 20, OldLines: 1, NewStart: 22, NewLines: 1, Text: "-old\n+new\n\\ No newline at end of file\n"},
		},
	}}})
}

// showing returns a chat with an open decision, long enough after it appeared for its keys to count.
func showing(t *testing.T, d *protocol.Decision) (*ui, *calls) {
	t.Helper()
	c := &calls{}
	u := &ui{ctx: t.Context(), session: c, talk: newTranscript(), width: 80, height: 30, connected: true, ticking: true}
	u.talk.session.ID, u.talk.session.Cwd = "ses_1", "/work"
	u.talk.session.Config.Approval.Sandbox = protocol.SandboxWorkspace
	u.talk.apply(protocol.Event{Type: protocol.EventDecisionOpened, Decision: d})
	u.followCard()
	u.card.since = time.Now().Add(-time.Minute)
	return u, c
}

// shown returns what a chat shows, without styles and spaces at the end of lines.
func shown(u *ui) string {
	lines, _, _ := live(u)
	for i, l := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(l), " ")
	}
	return strings.Join(lines, "\n")
}

func TestApprovalShowsWhatWillHappen(t *testing.T) {
	outside := approvalOf("start_command", `{"command":"npm i\nnpm test","outside":true,"detach":true}`, &protocol.ApprovalDetail{
		Command: &protocol.CommandDetail{Command: "npm i\nnpm\u202e test", Dir: "/srv", Outside: true}, Hosts: []string{"registry.npmjs.org", "*.github.com"}, Why: because,
	})
	protected := twoHunks()
	protected.Choices = []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject}
	protected.Detail.Files = append(protected.Detail.Files[:1:1], protocol.FilePreview{Path: "big.txt", Kind: protocol.PreviewCreate, Added: 9000, Cut: true,
		Hunks: []protocol.Hunk{{NewStart: 1, NewLines: 1, Text: "+first\n"}}})
	unrestricted := goTest()
	unrestricted.Detail.Command.Outside, unrestricted.SessionID = true, "ses_2"
	for _, c := range []struct {
		name string
		of   *protocol.Decision
		mode protocol.SandboxMode
		want string
	}{
		{"a command in a directory of the workspace", goTest(), protocol.SandboxWorkspace, `
┃ Run this command?                                              denied in 10:00
┃   $ go test ./... && <x>
┃     in web · timeoutMs 5000
┃   The rule ` + "`ask command go`" + ` of the user decides.
┃   y Allow once   s Session…   a Always…   n Deny   e Edit   r Deny, say why`},
		{"a command that leaves the sandbox, with hosts and a hidden character", outside, protocol.SandboxWorkspace, `
┃ Run outside the sandbox?                                       denied in 10:00
┃   $ npm i
┃     npm\u202e test
┃     start_command · in /srv · detach true
┃   network: registry.npmjs.org, *.github.com
┃   The rule ` + "`ask command go`" + ` of the user decides.
┃   y Allow once   s Session…   a Always…   n Deny   r Deny, say why`},
		{"a command of a subagent in a session without a sandbox", unrestricted, protocol.SandboxFullAccess, `
┃ Run this command?                                              denied in 10:00
┃   $ go test ./... && <x>
┃     in web · no sandbox · timeoutMs 5000
┃   The rule ` + "`ask command go`" + ` of the user decides.
┃   A subagent asks.
┃   y Allow once   s Session…   a Always…   n Deny   e Edit   r Deny, say why`},
		{"an edit with two hunks", twoHunks(), protocol.SandboxWorkspace, `
┃ Change a.go? +2 -2                                             denied in 10:00
┃ ▸ [x] change 1, line 9
┃    9   func f() {
┃   10 -     return 1
┃   10 +     return 2
┃   [x] change 2, line 22
┃   20 - old
┃   22 + new
┃        (no newline at the end of the file)
┃   The rule ` + "`ask command go`" + ` of the user decides.
┃   y Allow once   s Session…   a Always…   n Deny   Space Take or leave
┃   r Deny, say why`},
		{"two files, one of them too long", protected, protocol.SandboxWorkspace, `
┃ Change 2 files?                                                denied in 10:00
┃   Change a.go +2 -2
┃    9   func f() {
┃   10 -     return 1
┃   10 +     return 2
┃   ⋮
┃   20 - old
┃   22 + new
┃        (no newline at the end of the file)
┃
┃   Create big.txt +9000 -0
┃   1 + first
┃   The diff is too long: 8999 changed lines not in it.
┃   The rule ` + "`ask command go`" + ` of the user decides.
┃   y Allow once   n Deny   r Deny, say why   v View arguments`},
		{"a tool without a diff", approvalOf("mcp_post", `{"title":"A bug","body":"one\ntitle  fake","n":2}`, &protocol.ApprovalDetail{Why: because}), protocol.SandboxWorkspace, `
┃ Allow this tool call?                                          denied in 10:00
┃   mcp_post
┃   body
┃       one
┃       title  fake
┃   n  2
┃   title  A bug
┃   The rule ` + "`ask command go`" + ` of the user decides.
┃   y Allow once   s Session…   a Always…   n Deny   r Deny, say why`},
	} {
		t.Run("part/11 "+c.name, func(t *testing.T) {
			u, _ := showing(t, c.of)
			u.talk.session.Config.Approval.Sandbox = c.mode
			if got := shown(u); !strings.HasPrefix("\n"+got, c.want+"\n─") {
				t.Errorf("got\n%s\nwant%s", got, c.want)
			}
		})
	}
}

func TestLongDiffSaysWhatIsNotShown(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "+line %d\n", i+1)
	}
	d := approvalOf("write", `{}`, &protocol.ApprovalDetail{Why: because, Files: []protocol.FilePreview{{
		Path: "a.txt", Kind: protocol.PreviewCreate, Added: 100, Hunks: []protocol.Hunk{{NewStart: 1, NewLines: 100, Text: text.String()}},
	}}})
	u, _ := showing(t, d)
	for _, c := range []struct{ key, first, note string }{
		{"", "1 + line 1", "… 86 lines not shown: 0 above, 86 below (PgUp, PgDn)"},
		{"pgdown", "14 + line 14", "… 86 lines not shown: 13 above, 73 below (PgUp, PgDn)"},
		{"end", "87 + line 87", "… 86 lines not shown: 86 above, 0 below (PgUp, PgDn)"},
		{"up", "86 + line 86", "… 86 lines not shown: 85 above, 1 below (PgUp, PgDn)"},
		{"home", "1 + line 1", "… 86 lines not shown: 0 above, 86 below (PgUp, PgDn)"},
	} {
		press(u, c.key)
		lines := strings.Split(shown(u), "\n")
		if got := strings.TrimLeft(lines[1], "┃ "); got != c.first || !strings.Contains(shown(u), c.note) || len(lines) > u.height {
			t.Errorf("part/11 after %q the first of %d lines is %q, want %q and %q:\n%s", c.key, len(lines), got, c.first, c.note, shown(u))
		}
	}
}

func TestCountdownNeedsNoRightClock(t *testing.T) {
	d := goTest() // opened in 1970 by the clock of this machine
	u, _ := showing(t, d)
	if got := shown(u); !strings.Contains(got, "denied in 10:00") {
		t.Errorf("part/11 a decision that opened now shows\n%s", got)
	}
	u.talk.ends[d.ID] = time.Now().Add(59*time.Second + 400*time.Millisecond)
	if got := shown(u); !strings.Contains(got, "denied in 0:59") {
		t.Errorf("part/11 after nine minutes it shows\n%s", got)
	}
	d.RemainingMs = 65_200
	u.talk.attached(&protocol.SessionAttachResult{Session: protocol.Session{ID: "ses_1"}, Gap: &protocol.Gap{}, Decisions: []protocol.Decision{*d}})
	if got := shown(u); !strings.Contains(got, "denied in 1:05") {
		t.Errorf("part/11 after a reconnect it shows\n%s", got)
	}
}

func TestQuestionForRun(t *testing.T) {
	const want = `Change a.go? +2 -2
  [x] change 1, line 9
   9   func f() {
  10 -     return 1
  10 +     return 2
  [x] change 2, line 22
  20 - old
  22 + new
       (no newline at the end of the file)
  The rule ` + "`ask command go`" + ` of the user decides.
  y Allow once   s Allow for this session   a Always allow in this workspace   n Deny   y 1 Allow only change 1   r Deny, say why   (denied in 10:00)`
	d := twoHunks()
	if got := Question(d, &protocol.Session{ID: d.SessionID, Cwd: "/work"}) + "\n" + Offers(d) + Until(d); got != want {
		t.Errorf("part/11 got\n%s\nwant\n%s", got, want)
	}
}
