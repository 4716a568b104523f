package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// toolCard is the block of the cards on the paper: no empty line is between two of them.
const toolCard = "cards"

// toolCall renders a call that has ended on one line: its status, its arguments, what
// it did and its duration. A failure has a second line with the reason. The pager has
// the rest.
func toolCall(item *protocol.Item, style markdown.Style) string {
	head := callLine(item, item.Status, style.Width)
	if item.Status == protocol.ItemUnknown {
		return asking.Render("? ") + head + asking.Render(" · outcome unknown")
	}
	if item.Output != nil && item.Output.Status == protocol.OutputCancelled {
		return faint.Render("– ") + head + faint.Render(" · cancelled")
	}
	why, failed := failureOf(item)
	if !failed {
		return good.Render("✓ ") + head
	}
	if why != "" {
		why = "\n" + bad.Render("  "+ansi.Truncate(termtext.OneLine(why, 400), max(style.Width-3, 20), "…"))
	}
	return bad.Render("✗ ") + head + why
}

// callLine renders what a call with a status does and its result on one line.
func callLine(item *protocol.Item, status protocol.ItemStatus, width int) string {
	does, what := callWords(item.Title, status, item.Tool, item.Args)
	tail := resultOf(item)
	if steps := planIn(item); steps != nil {
		does, what = does+":", steps.summary(true)
	} else if item.Output != nil && item.Output.Change != nil {
		what = item.Output.Change.Path
	}
	does = termtext.OneLine(does, 60)
	room := width - 4 - ansi.StringWidth(does+tail)
	return strong.Render(does) + " " + ansi.Truncate(termtext.OneLine(what, 400), max(room, 8), "…") + tail
}

// callWords returns what a call does, and to what: a form of a verb and its object. A call without a title has the name of its tool and its
// arguments.
func callWords(title *protocol.CallTitle, status protocol.ItemStatus, tool string, args json.RawMessage) (does, what string) {
	if title == nil {
		return tool, termtext.Args(args)
	}
	return title.For(status), strings.TrimSpace(title.Subject + " " + title.Detail)
}

// exitOf returns the exit code of a command that has ended; nil: the call ran none.
func exitOf(out *protocol.ToolOutput) *int {
	var value struct{ ExitCode *int }
	if out == nil || json.Unmarshal(out.Value, &value) != nil {
		return nil // other tools have values of other forms
	}
	return value.ExitCode
}

// failureOf reports whether a call failed, and why on one line: for a command that is the
// last line of its output.
func failureOf(item *protocol.Item) (why string, failed bool) {
	out := item.Output
	if deniedByAnswer(item.Decision) {
		return decidedText(item.Decision), true
	}
	if out != nil && out.Failure != nil {
		return strings.TrimPrefix(out.Failure.Message, item.Tool+" "), true
	}
	if code := exitOf(out); code == nil || *code == 0 {
		return "", false
	}
	text := outputText(out)
	return text[strings.LastIndexByte(text, '\n')+1:], true
}

// outputText returns the output of a call without the line that tells the model the
// exit code.
func outputText(out *protocol.ToolOutput) string {
	text := strings.TrimRight(out.Text, "\n ")
	if code := exitOf(out); code != nil {
		text = strings.TrimRight(strings.TrimSuffix(text, fmt.Sprintf("[Exit code %d.]", *code)), "\n ")
	}
	return text
}

// shortOutput is the longest output of a command that its card has, in characters.
const shortOutput = 40

// resultOf renders what a call that has ended did: the lines that it changed, its exit
// code, how long it took, and how many lines of output there are to unfold. A command
// whose output is a short line has that instead.
func resultOf(item *protocol.Item) (tail string) {
	out := item.Output
	if out == nil || planIn(item) != nil && out.Failure == nil {
		return ""
	}
	if out.Change != nil {
		tail += " " + good.Render(fmt.Sprint("+", out.Change.Added)) + " " + bad.Render(fmt.Sprint("-", out.Change.Removed))
	}
	if code := exitOf(out); code != nil && *code != 0 {
		tail += bad.Render(fmt.Sprint(" · exit ", *code))
	}
	tail += faint.Render(" · " + lasted(item.DurationMs))
	text, code := outputText(out), exitOf(out)
	switch {
	case out.Change != nil || out.Failure != nil:
	case strings.Contains(text, "\n"):
		tail += faint.Render(" · " + counted(strings.Count(text, "\n")+1, "line"))
	case text != "" && code != nil && *code == 0 && len([]rune(text)) <= shortOutput:
		tail += faint.Render(" · " + termtext.OneLine(text, shortOutput))
	}
	return tail
}
