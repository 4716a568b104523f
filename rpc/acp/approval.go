package acp

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// maxWidths is the number of widths that a permission request offers for each lasting
// choice. An editor shows each of them as a button.
const maxWidths = 3

// option is a button of a permission request with the answer that it sends.
type option struct {
	sdk.PermissionOption
	choice protocol.DecisionChoice
	width  *int
}

// optionsOf returns the buttons for a decision. A choice that covers later calls has
// one button for each width, and "allow for this session" only one for the proposal.
// Choices that need text are left out; those need a form.
func optionsOf(d *protocol.Decision) (all []option) {
	for _, c := range d.Choices {
		o, ok := options[c]
		if !ok {
			continue
		}
		o.OptionId = sdk.PermissionOptionId(c)
		if o.Kind == sdk.PermissionOptionKindAllowAlways {
			all = append(all, widthOptions(d, c, o)...)
			continue
		}
		all = append(all, option{o, c, nil})
	}
	return all
}

// widthOptions returns the buttons of a choice that covers later calls. The last one
// covers exactly this call, unless a width says so.
func widthOptions(d *protocol.Decision, c protocol.DecisionChoice, o sdk.PermissionOption) (all []option) {
	var widths []protocol.ApprovalWidth
	if d.Detail != nil {
		widths = d.Detail.Widths
	}
	if len(widths) > maxWidths {
		widths = widths[:maxWidths]
	}
	exact := false
	for i, w := range widths {
		one := o
		one.OptionId += sdk.PermissionOptionId(":" + strconv.Itoa(i))
		one.Name += ": " + termtext.OneLine(w.Text, 120)
		all, exact = append(all, option{one, c, new(i)}), exact || w.Rule == nil
		if c == protocol.ChooseAllowSession {
			return all
		}
	}
	if exact {
		return all
	}
	o.Name += ": only exactly this call"
	if len(d.Varying) > 0 {
		o.Name = strings.TrimSuffix(o.Name, "only exactly this call") + "this call with any " + strings.Join(d.Varying, ", ")
	}
	return append(all, option{o, c, nil})
}

// answerOf returns the answer that a button sends. It returns false for an id that the
// request did not offer: such an outcome counts as dismissed.
func answerOf(all []option, id sdk.PermissionOptionId) (protocol.DecisionRespondParams, bool) {
	for _, o := range all {
		if o.OptionId == id {
			return protocol.DecisionRespondParams{Choice: o.choice, Width: o.width}, true
		}
	}
	return protocol.DecisionRespondParams{}, false
}

// buttons returns options in the form of the protocol.
func buttons(all []option) []sdk.PermissionOption {
	out := make([]sdk.PermissionOption, len(all))
	for i, o := range all {
		out[i] = o.PermissionOption
	}
	return out
}

// describeApproval makes a call show what it will do: its command in the title with
// what it reaches, and diffs or text in the content.
func (v *view) describeApproval(u *sdk.SessionUpdateToolCall, d *protocol.Decision) {
	detail := d.Detail
	if detail == nil {
		return
	}
	if c := detail.Command; c != nil {
		u.Title = commandTitle(d.Call.Name, detail)
	}
	if parts := v.previews(detail.Files); len(parts) > 0 {
		u.Content, u.Locations = parts, locationsOf(parts)
	}
	if text := v.approvalText(detail, timeLeft(d)); text != "" {
		u.Content = append(u.Content, textContent(text)...)
	}
}

// commandTitle names a command, and what it may reach beyond the sandbox. A long
// command is cut, but not the rest; the content has all of it.
func commandTitle(tool string, detail *protocol.ApprovalDetail) string {
	if t := protocol.TitleOf(protocol.ToolCall{Name: tool}); t != nil {
		tool = t.Verb
	}
	title := arguments{Command: detail.Command.Command}.title(tool)
	if detail.Command.Outside {
		title += " (" + unconfined(detail) + ")"
	}
	if len(detail.Hosts) > 0 {
		title += " (network: " + strings.Join(detail.Hosts, ", ") + ")"
	}
	return title
}

// unconfined says that a command runs in no sandbox: it leaves that of the session, or
// the session may have none.
func unconfined(detail *protocol.ApprovalDetail) string {
	if detail.Why.By == protocol.DecidedByOutside {
		return "outside the sandbox"
	}
	return "without a sandbox"
}

// approvalText describes a call for the content of a permission request: its whole
// command with the directory, what no diff shows, why lashd asks, and for how long.
func (v *view) approvalText(detail *protocol.ApprovalDetail, left time.Duration) string {
	var lines []string
	if c := detail.Command; c != nil {
		lines = append(lines, fence(c.Command), "Directory: "+v.relative(c.Dir))
		if c.Outside {
			lines = append(lines, "Runs "+unconfined(detail)+".")
		}
	}
	if len(detail.Hosts) > 0 {
		lines = append(lines, "Network: "+strings.Join(detail.Hosts, ", "))
	}
	for _, f := range detail.Files {
		if text := missing(f); text != "" {
			lines = append(lines, f.Path+": "+text)
		}
	}
	if detail.Why.Text != "" {
		lines = append(lines, detail.Why.Text)
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("Denied without an answer in %d:%02d.", int(left.Minutes()), int(left.Seconds())%60))
	}
	return strings.Join(lines, "\n\n")
}

// timeLeft returns the time until lashd answers a decision itself, when the editor
// learns of it; 0 if there is no deadline. The editor counts down no time.
func timeLeft(d *protocol.Decision) time.Duration {
	if d.DeadlineMs == 0 {
		return 0
	}
	return time.Duration(cmp.Or(d.RemainingMs, d.DeadlineMs-d.OpenedAtMs)) * time.Millisecond
}

// fence returns text as a code block. Its fence is longer than any run of backquotes
// in the text, so that the text cannot end the block.
func fence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + "\n" + text + "\n" + mark
}

// missing says what the diff of a file does not show; "" if it shows all.
func missing(f protocol.FilePreview) string {
	switch {
	case f.Problem != "":
		return "there is no diff: " + f.Problem
	case f.Binary:
		return "the file is not text, so there is no diff"
	case f.Cut:
		return fmt.Sprintf("the diff is too long and incomplete (%d lines added, %d removed in all)", f.Added, f.Removed)
	}
	return ""
}

// relative names a directory, relative to the workspace if it is in it.
func (v *view) relative(dir string) string {
	rel, err := filepath.Rel(v.cwd, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return dir
	}
	return cmp.Or(rel, ".")
}

// previews returns what a call will change as diff content, one entry for each hunk.
func (v *view) previews(files []protocol.FilePreview) (parts []sdk.ToolCallContent) {
	for _, f := range files {
		for _, h := range f.Hunks {
			var r diffReader
			r.hunks = []hunk{{}}
			for line := range strings.Lines(h.Text) {
				if strings.HasPrefix(line, `\`) {
					r.dropNewline()
				} else {
					r.body(line)
				}
			}
			if path := v.absolute(f.Path); f.Kind == protocol.PreviewCreate {
				parts = append(parts, sdk.ToolDiffContent(path, r.hunks[0].new))
			} else {
				parts = append(parts, sdk.ToolDiffContent(path, r.hunks[0].new, r.hunks[0].old))
			}
		}
	}
	return parts
}
