// Package manpage writes manual pages from the declarations of a command line. The release archives contain them.
//
// mango-kong, the library for this, writes one page for all commands without their arguments, and joins the lines of examples.
package manpage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Page is one manual page.
type Page struct {
	Name string // of the page, such as lash-session
	Text string // in the language man(7)
}

// Pages returns the page of a program, and one page for each of its commands, with their subcommands.
func Pages(app *kong.Application, version string, day time.Time) []Page {
	head := func(name string) string {
		return fmt.Sprintf(".TH %s 1 %s \"%s %s\"\n", escape(strings.ToUpper(name)), day.UTC().Format(time.DateOnly), app.Name, version)
	}
	pages := []Page{{app.Name, head(app.Name) + program(app)}}
	for _, command := range visible(app.Node) {
		name := app.Name + "-" + command.Name
		pages = append(pages, Page{name, head(name) + page(app, command)})
	}
	return pages
}

// program returns the body of a program's page. The first line of its help is its purpose.
func program(app *kong.Application) string {
	purpose, about, _ := strings.Cut(app.Help, "\n")
	var b strings.Builder
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n.I command\n[flags]\n.SH DESCRIPTION\n", app.Name, escape(title(purpose)), app.Name)
	b.WriteString(prose(about) + ".SH COMMANDS\n")
	for _, c := range visible(app.Node) {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\nSee\n.BR %s (1).\n", escape(app.Name+" "+c.Name), prose(c.Help), escape(app.Name+"-"+c.Name))
	}
	b.WriteString(".SH GLOBAL OPTIONS\n" + options(app.Flags))
	return b.String()
}

// page returns the body of the page of a command.
func page(app *kong.Application, command *kong.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".SH NAME\n%s\\-%s \\- %s\n.SH SYNOPSIS\n", app.Name, escape(command.Name), escape(title(command.Help)))
	all := runnable(command)
	for i, c := range all {
		if i > 0 {
			b.WriteString(".br\n")
		}
		b.WriteString(".B " + escape(c.FullPath()) + "\n" + escape(arguments(c)) + "\n")
	}
	b.WriteString(".SH DESCRIPTION\n" + cmpOr(prose(command.Detail), prose(command.Help)) + details(command))
	for _, c := range all {
		if c != command {
			b.WriteString(".SS " + escape(c.FullPath()) + "\n" + prose(c.Help+"\n\n"+c.Detail) + details(c))
		}
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1),\nwhich lists the global options, the environment variables and the exit codes.\n", app.Name)
	return b.String()
}

// cmpOr is cmp.Or for texts that may consist of white space.
func cmpOr(text, otherwise string) string {
	if strings.TrimSpace(text) == "" {
		return otherwise
	}
	return text
}

// title returns help as the purpose of a page has it: without the full stop.
func title(help string) string { return strings.TrimSuffix(strings.TrimSpace(help), ".") }

// visible returns the subcommands that the help lists.
func visible(at *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(at.Children), func(c *kong.Node) bool { return c.Hidden })
}

// runnable returns a command without subcommands, or all that are below it.
func runnable(at *kong.Node) []*kong.Node {
	if len(visible(at)) == 0 {
		return []*kong.Node{at}
	}
	var all []*kong.Node
	for _, c := range visible(at) {
		all = append(all, runnable(c)...)
	}
	return all
}

// arguments returns what follows the name of a command.
func arguments(c *kong.Node) string {
	parts := []string{}
	for _, p := range c.Positional {
		parts = append(parts, p.Summary())
	}
	return strings.Join(append(parts, "[flags]"), " ")
}

// details returns the arguments and the flags of a command.
func details(c *kong.Node) string {
	var b strings.Builder
	for _, p := range c.Positional {
		fmt.Fprintf(&b, ".TP\n.I %s\n%s", escape(p.Summary()), help(p))
	}
	return b.String() + options(c.Flags)
}

// options returns a list of flags.
func options(flags []*kong.Flag) string {
	var b strings.Builder
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s", escape(f.String()), help(f.Value))
	}
	return b.String()
}

// help returns the text about an argument or a flag.
func help(v *kong.Value) string { return prose(kong.DefaultHelpValueFormatter(v)) }

// prose returns text with its paragraphs. Indented lines, such as examples, keep their breaks.
func prose(text string) string {
	var b strings.Builder
	literal := false
	toggle := func(to bool) {
		if literal != to {
			b.WriteString(map[bool]string{true: ".RS 2\n.nf\n", false: ".fi\n.RE\n"}[to])
		}
		literal = to
	}
	blank := false
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, " \n")
		if line == "" {
			blank = true
			continue
		}
		toggle(strings.HasPrefix(line, " "))
		if blank && !literal {
			b.WriteString(".PP\n")
		} else if blank {
			b.WriteString("\\&\n")
		}
		blank = false
		b.WriteString(escape(strings.TrimPrefix(line, "  ")) + "\n")
	}
	toggle(false)
	return b.String()
}

// escape protects characters with a meaning in man(7). A hyphen stays one that can be copied.
func escape(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
