package console

import (
	"fmt"
	"go/doc/comment"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/charmbracelet/x/ansi"
)

const (
	leastHelp  = 80 // terminals that are narrower get the help in one column
	helpIndent = 6  // of the text below a name
)

// printHelp prints the help of a command. On a narrow terminal, the text of each argument, flag and command is below its name.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	f, ok := ctx.Stdout.(*os.File)
	if !ok || Columns(f) == 0 || Columns(f) >= leastHelp {
		return kong.DefaultHelpPrinter(options, ctx)
	}
	node := ctx.Model.Node
	if selected := ctx.Selected(); selected != nil {
		node = selected
	}
	_, err := io.WriteString(f, narrowHelp(ctx.Model.Name, node, Columns(f)))
	return err
}

// narrowHelp returns the help of a command in one column.
func narrowHelp(program string, node *kong.Node, width int) string {
	var out strings.Builder
	usage := program + node.Summary()
	if node.Parent != nil {
		usage = program + " " + node.Summary()
	}
	fmt.Fprintln(&out, Hanging("Usage: "+usage, width, helpIndent))
	for _, text := range []string{node.Help, node.Detail} {
		if text != "" {
			fmt.Fprintln(&out, "\n"+paragraphs(text, width))
		}
	}
	section := func(title string, names []string, texts []string) {
		if len(names) > 0 {
			fmt.Fprintln(&out, "\n"+title)
		}
		for i, name := range names {
			fmt.Fprintln(&out, "  "+name)
			if texts[i] != "" {
				fmt.Fprintln(&out, below(texts[i], width))
			}
		}
	}
	var names, texts []string
	for _, p := range node.Positional {
		names, texts = append(names, p.Summary()), append(texts, p.Help)
	}
	section("Arguments:", names, texts)
	names, texts = nil, nil
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			names, texts = append(names, f.String()), append(texts, kong.DefaultHelpValueFormatter(f.Value))
		}
	}
	section("Flags:", names, texts)
	names, texts = nil, nil
	for _, c := range node.Leaves(true) {
		names, texts = append(names, c.Path()), append(texts, c.Help)
	}
	section("Commands:", names, texts)
	return out.String()
}

// below returns a text as lines below a name.
func below(text string, width int) string {
	return strings.Repeat(" ", helpIndent) + Hanging(text, width, helpIndent)
}

// twoColumns matches an indented line with a name and a text.
var twoColumns = regexp.MustCompile(`^( +\S.*?) {2,}(\S.*)$`)

// paragraphs fills the paragraphs of a long help. Of an indented line that is too long, the text goes below the name; a command stays
// whole, so that it can be copied.
func paragraphs(text string, width int) string {
	var p comment.Parser
	printer := comment.Printer{TextWidth: width, TextCodePrefix: "  "}
	lines := strings.Split(strings.TrimSpace(string(printer.Text(p.Parse(text)))), "\n")
	for i, line := range lines {
		if m := twoColumns.FindStringSubmatch(line); m != nil && ansi.StringWidth(line) > width {
			lines[i] = m[1] + "\n" + below(m[2], width)
		}
	}
	return strings.Join(lines, "\n")
}
