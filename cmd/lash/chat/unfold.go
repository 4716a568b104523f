package chat

import (
	"fmt"
	"path/filepath"
	"strings"

	"lashd/cmd/lash/markdown"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// unfolded renders all of an entry: of a call the arguments, the change and the
// output, of the model's thoughts every line.
func (e entry) unfolded(style markdown.Style) []string {
	switch {
	case e.item != nil && e.item.Kind == protocol.ItemToolCall:
		return unfoldedCall(e.item, style)
	case e.item != nil && e.item.Kind == protocol.ItemReasoning:
		return indented("thought:\n"+e.item.Text, faint.Render)
	case e.item != nil && e.item.Kind == protocol.ItemCodeCell:
		return unfoldedCell(e.item, style)
	}
	return strings.Split(e.shown(style), "\n")
}

// unfoldedCall renders a call with all that it has.
func unfoldedCall(item *protocol.Item, style markdown.Style) []string {
	head, _, _ := strings.Cut(toolCall(item, style), "\n")
	lines, out := []string{head}, item.Output
	if steps := planIn(item); steps != nil {
		for _, s := range steps {
			lines = append(lines, s.line(style.Width-5))
		}
		return lines
	}
	lines = append(lines, allArguments(item, style)...)
	if why := decidedText(item.Decision); why != "" {
		lines = append(lines, indented(why, faint.Render)...)
	}
	if out == nil {
		return lines
	}
	if out.Failure != nil && !deniedByAnswer(item.Decision) {
		lines = append(lines, indented(out.Failure.Message, bad.Render)...)
	}
	if out.Change != nil {
		for _, l := range markdown.Diff(withoutHeader(out.Change.Diff), style) {
			lines = append(lines, "  "+l)
		}
	}
	if out.Text != "" && (out.Failure == nil || !strings.Contains(out.Text, out.Failure.Message)) && out.Change == nil {
		lines = append(lines, indented(outputText(out), faint.Render)...)
	}
	if a := out.Artifact; a != nil {
		lines = append(lines, asking.Render(fmt.Sprintf("  This is a part of the output. /output shows all %s.", bytesOf(a.Size))))
	}
	return lines
}

// allArguments renders the arguments of a call, one below the other, unless the line
// of the call has all of them. Those with several lines are shown as they are.
func allArguments(item *protocol.Item, style markdown.Style) (lines []string) {
	args := termtext.Members(item.Args)
	if len(args) == 1 && !strings.Contains(args[0].Value, "\n") && len(args[0].Value) < style.Width/2 {
		return nil
	}
	for _, a := range args {
		name := faint.Render("  " + termtext.OneLine(a.Name, 60) + ": ")
		if !strings.Contains(a.Value, "\n") {
			lines = append(lines, name+termtext.Printable(a.Value))
			continue
		}
		lines = append(lines, name)
		for _, l := range markdown.Code(languageOf(a.Name, item.Args), termtext.Printable(a.Value), style) {
			lines = append(lines, "    "+l)
		}
	}
	return lines
}

// languageOf names the language of an argument: commands are for a shell, and other
// texts for the file that the call names.
func languageOf(name string, args []byte) string {
	if name == "command" {
		return "bash"
	}
	for _, a := range termtext.Members(args) {
		if a.Name == "path" {
			return strings.TrimPrefix(filepath.Ext(a.Value), ".")
		}
	}
	return ""
}

// unfoldedCell renders a code cell with all of its code, calls and output.
func unfoldedCell(item *protocol.Item, style markdown.Style) []string {
	lines := []string{strings.SplitN(codeCell(item, style), "\n", 2)[0]}
	for _, l := range markdown.Code(item.Language, item.Text, style) {
		lines = append(lines, "  "+l)
	}
	r := item.Cell
	if r == nil {
		return append(lines, bad.Render("  The code is incomplete and was not run."))
	}
	for i := range r.Calls {
		lines = append(lines, cellCall(&r.Calls[i], style.Width))
	}
	shown := *r
	shown.Error = ""
	lines = append(lines, indented(shown.Text(), faint.Render)...)
	return append(lines, indented(r.ErrorText(), bad.Render)...)
}

// indented renders the lines of a text, two columns to the right. An empty text has
// none.
func indented(text string, render func(...string) string) (lines []string) {
	if text = strings.TrimRight(termtext.Printable(text), "\n"); text == "" {
		return nil
	}
	for l := range strings.SplitSeq(text, "\n") {
		lines = append(lines, render("  "+l))
	}
	return lines
}

// searched returns the text of an entry for a search: all that unfolded may show.
func (e entry) searched() string {
	i := e.item
	if i == nil {
		return e.note
	}
	texts := []string{i.Text, i.Tool + " " + termtext.Args(i.Args)}
	for _, a := range termtext.Members(i.Args) {
		texts = append(texts, a.Name+": "+a.Value)
	}
	if o := i.Output; o != nil {
		texts = append(texts, o.Text)
		if o.Failure != nil {
			texts = append(texts, o.Failure.Message)
		}
		if o.Change != nil {
			texts = append(texts, o.Change.Diff)
		}
	}
	if i.Cell != nil {
		texts = append(texts, i.Cell.Text(), i.Cell.ErrorText())
		for _, c := range i.Cell.Calls {
			texts = append(texts, c.Tool+" "+termtext.Args(c.Args))
		}
	}
	return strings.Join(texts, "\n")
}

// bytesOf formats a size.
func bytesOf(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KB", (n+1<<10-1)>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
