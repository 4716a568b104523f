package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lashd/rpc/protocol"
)

// Options say how items are written.
type Options struct {
	Reasoning bool            // with the model's reasoning
	After     protocol.TurnID // the turn of what precedes the items
}

// argsLength is the maximum length of the arguments of a call, in characters.
const argsLength = 160

// Title returns the head of a document about a session: its title and what it is.
func Title(s protocol.Session) string {
	title := oneLine(s.Title)
	if title == "" {
		title = "Session of " + day(s.CreatedAtMs)
	}
	about := []string{
		"Session: " + code(string(s.ID)), "Directory: " + code(s.Cwd), "Model: " + code(s.Config.Model.ID),
		"Started: " + minute(s.CreatedAtMs), fmt.Sprintf("Turns: %d", s.TurnIndex),
	}
	if s.Usage.Cost > 0 {
		about = append(about, fmt.Sprintf("Cost: $%.2f", float64(s.Usage.Cost)/1e9))
	}
	return "# " + title + "\n\n- " + strings.Join(about, "\n- ") + "\n"
}

// Markdown writes items as Markdown. Each turn has a heading with its time. A prompt is quoted, a
// tool call is one line without its output, and an edit has its diff.
func Markdown(items []protocol.Item, o Options) string {
	var b strings.Builder
	turn := o.After
	for i := range items {
		item := &items[i]
		block := block(item, o)
		if block == "" {
			continue
		}
		if item.TurnID != turn && item.TurnID != "" {
			turn = item.TurnID
			b.WriteString("\n## " + minute(item.AtMs) + "\n")
		}
		b.WriteString("\n" + strings.TrimRight(block, "\n") + "\n")
	}
	return b.String()
}

// block returns the block of one item; empty: the document leaves it out.
func block(item *protocol.Item, o Options) string {
	switch item.Kind {
	case protocol.ItemUserMessage:
		return quoted(item.Text, item.Attachment)
	case protocol.ItemAgentMessage:
		return item.Text
	case protocol.ItemReasoning:
		if o.Reasoning && item.Text != "" {
			return "<details><summary>Reasoning</summary>\n\n" + item.Text + "\n\n</details>"
		}
	case protocol.ItemToolCall:
		return call(item)
	case protocol.ItemCodeCell:
		return fenced(item.Language, item.Text) + "\n\n" + status(item)
	case protocol.ItemCompaction:
		return "*The history before this point was summarized for the model.*"
	case protocol.ItemNotice:
		if text := oneLine(item.Text); text != "" {
			return "*" + short(text, argsLength) + "*"
		}
	}
	return ""
}

// quoted quotes a prompt. A file is named, not included.
func quoted(text string, file *protocol.Attachment) string {
	if file != nil {
		name := file.Name
		if name == "" {
			name = file.Type
		}
		text = strings.TrimLeft(text+"\nFile: "+code(name), "\n")
	}
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ")
}

// call returns a tool call: one line, and the diff of an edit.
func call(item *protocol.Item) string {
	text := "- **" + oneLine(item.Tool) + "**"
	if args := arguments(item.Args); args != "" {
		text += " " + code(args)
	}
	text += ": " + status(item)
	if item.Output == nil || item.Output.Change == nil || item.Output.Change.Diff == "" {
		return text
	}
	c := item.Output.Change
	return fmt.Sprintf("%s, %s (+%d −%d)\n\n%s", text, code(c.Path), c.Added, c.Removed, fenced("diff", c.Diff))
}

// arguments returns the arguments of a call in one line. Of a call with one text it is the text.
func arguments(args json.RawMessage) string {
	var values map[string]json.RawMessage
	var text string
	if json.Unmarshal(args, &values) == nil && len(values) == 1 {
		for _, v := range values {
			if json.Unmarshal(v, &text) == nil {
				return short(oneLine(text), argsLength)
			}
		}
	}
	var compact bytes.Buffer
	if len(values) == 0 || json.Compact(&compact, args) != nil {
		return ""
	}
	return short(oneLine(compact.String()), argsLength)
}

// status returns the status of a call or a cell with its duration.
func status(item *protocol.Item) string {
	if item.DurationMs < 1000 {
		return string(item.Status)
	}
	return fmt.Sprintf("%s in %.1f s", item.Status, float64(item.DurationMs)/1000)
}

// fenced returns a block of code, whose fence is longer than any in the text.
func fenced(language, text string) string {
	fence := strings.Repeat("`", max(3, backticks(text)+1))
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// code returns a span of code.
func code(text string) string {
	n := backticks(text)
	if n == 0 {
		return "`" + text + "`"
	}
	fence := strings.Repeat("`", n+1)
	return fence + " " + text + " " + fence
}

// backticks returns the length of the longest run of backticks.
func backticks(text string) (longest int) {
	n := 0
	for _, r := range text {
		if n++; r != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}

// short cuts a text to n characters.
func short(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func day(ms int64) string    { return time.UnixMilli(ms).UTC().Format("2 January 2006") }
func minute(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04 UTC") }
