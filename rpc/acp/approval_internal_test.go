package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// approvalOf returns an approval with all choices.
func approvalOf(tool string, detail *protocol.ApprovalDetail) *protocol.Decision {
	return &protocol.Decision{
		ID: "dec_1", TurnID: "trn_1", SessionID: "ses_1", Kind: protocol.DecisionApproval, Detail: detail,
		Call:    &protocol.ToolCall{CallID: "call_1", Name: tool, Args: json.RawMessage(`{}`)},
		Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject},
	}
}

// contentOf writes the content of a call as text, with a diff as "path: old -> new".
func contentOf(parts []sdk.ToolCallContent) (all []string) {
	for _, p := range parts {
		switch {
		case p.Diff != nil && p.Diff.OldText == nil:
			all = append(all, fmt.Sprintf("%s: new file %q", p.Diff.Path, p.Diff.NewText))
		case p.Diff != nil:
			all = append(all, fmt.Sprintf("%s: %q -> %q", p.Diff.Path, *p.Diff.OldText, p.Diff.NewText))
		default:
			all = append(all, p.Content.Content.Text.Text)
		}
	}
	return all
}

func TestPermissionRequestShowsTheCall(t *testing.T) {
	why := protocol.ApprovalReason{Text: "No rule allows the call."}
	for _, c := range []struct {
		name, tool, title string
		detail            *protocol.ApprovalDetail
		content           []string
	}{
		{"a command outside the sandbox with hosts", "shell", "Run npm i (outside the sandbox) (network: registry.npmjs.org)", &protocol.ApprovalDetail{
			Command: &protocol.CommandDetail{Command: "npm i", Dir: "/work/web", Outside: true}, Hosts: []string{"registry.npmjs.org"}, Why: protocol.ApprovalReason{By: protocol.DecidedByOutside, Text: "No rule allows the call."},
		}, []string{"```\nnpm i\n```\n\nDirectory: web\n\nRuns outside the sandbox.\n\nNetwork: registry.npmjs.org\n\nNo rule allows the call."}},
		{"a long command, whose title still says where it runs", "shell", "Run " + strings.Repeat("x", 116) + "... (without a sandbox)", &protocol.ApprovalDetail{
			Command: &protocol.CommandDetail{Command: strings.Repeat("x", 200) + "\n````", Dir: "/srv", Outside: true},
		}, []string{"`````\n" + strings.Repeat("x", 200) + "\n````\n`````\n\nDirectory: /srv\n\nRuns without a sandbox."}},
		{"files", "patch", "Edit", &protocol.ApprovalDetail{Why: why, Files: []protocol.FilePreview{
			{Path: "a.go", Kind: protocol.PreviewChange, Hunks: []protocol.Hunk{{Text: " a\n-b\n+c\n"}, {Text: "-x\n\\ No newline at end of file\n+y\n"}}},
			{Path: "/etc/new", Kind: protocol.PreviewCreate, Hunks: []protocol.Hunk{{Text: "+one\n"}}, Cut: true, Added: 500},
			{Path: "b.png", Kind: protocol.PreviewDelete, Binary: true},
		}}, []string{`/work/a.go: "a\nb\n" -> "a\nc\n"`, `/work/a.go: "x" -> "y\n"`, `/etc/new: new file "one\n"`,
			"/etc/new: the diff is too long and incomplete (500 lines added, 0 removed in all)\n\nb.png: the file is not text, so there is no diff\n\nNo rule allows the call."}},
	} {
		t.Run("part/11 "+c.name, func(t *testing.T) {
			v := newView("/work")
			_, call := v.asked(approvalOf(c.tool, c.detail), "ses_1")
			if got := contentOf(call.Content); *call.Title != c.title || !slices.Equal(got, c.content) {
				t.Errorf("the title is %q and the content\n%q, want %q and\n%q", *call.Title, got, c.title, c.content)
			}
		})
	}
}

func TestPermissionRequestSaysHowLongItWaits(t *testing.T) {
	t.Run("issue/20-4 a permission request says when the call is denied without an answer", func(t *testing.T) {
		d := approvalOf("shell", &protocol.ApprovalDetail{Command: &protocol.CommandDetail{Command: "true", Dir: "/work"}})
		d.OpenedAtMs, d.DeadlineMs = 1000, 601_000
		for left, want := range map[int64]string{0: "10:00", 65_000: "1:05"} {
			d.RemainingMs = left
			_, call := newView("/work").asked(d, "ses_1")
			if got := contentOf(call.Content)[0]; !strings.HasSuffix(got, "\n\nDenied without an answer in "+want+".") {
				t.Errorf("with %d ms left, the content is %q", left, got)
			}
		}
	})
}

func TestPermissionOptions(t *testing.T) {
	d := approvalOf("shell", &protocol.ApprovalDetail{Widths: []protocol.ApprovalWidth{
		{Text: "commands that begin with go test", Rule: &protocol.ApprovalRule{}}, {Text: "commands that begin with go", Rule: &protocol.ApprovalRule{}},
	}})
	want := []string{
		"allowOnce allow_once Allow once",
		"allowSession:0 allow_always Allow for this session: commands that begin with go test",
		"allowAlways:0 allow_always Always allow: commands that begin with go test",
		"allowAlways:1 allow_always Always allow: commands that begin with go",
		"allowAlways allow_always Always allow: only exactly this call",
		"reject reject_once Deny",
	}
	all := optionsOf(d)
	var got []string
	for _, o := range buttons(all) {
		got = append(got, fmt.Sprintf("%s %s %s", o.OptionId, o.Kind, o.Name))
	}
	if !slices.Equal(got, want) {
		t.Errorf("part/11 the options are %q, want %q", got, want)
	}
	if p, ok := answerOf(all, "allowAlways:1"); !ok || p.Choice != protocol.ChooseAllowAlways || p.Width == nil || *p.Width != 1 {
		t.Errorf("part/11 allowAlways:1 answers %+v", p)
	}
	if p, ok := answerOf(all, "allowAlways"); !ok || p.Choice != protocol.ChooseAllowAlways || p.Width != nil {
		t.Errorf("part/11 allowAlways answers %+v", p)
	}
	if p, ok := answerOf(all, "allowAlways:2"); ok {
		t.Errorf("part/11 an option that was not offered answers %+v", p)
	}
}
