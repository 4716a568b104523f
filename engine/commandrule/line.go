// Package commandrule decides whether an approval rule is about a command line.
//
// A line is parsed as a shell parses it, and a rule is compared with the simple commands that it consists of. The package runs nothing
// and reads no files. All its values can be used concurrently.
package commandrule

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// These keep a hostile line from costing more than some 100 ms. One that is over a limit cannot be parsed.
	maxText     = 32 << 10  // bytes of a line
	maxTexts    = 128 << 10 // bytes of a line with all lines in it, such as those of sh -c
	maxNesting  = 100       // parentheses within parentheses
	maxDepth    = 8         // lines within lines
	maxCommands = 2000
)

// Line is a parsed command line. Nobody knows which shell runs it, so it holds the line as each dialect reads it.
type Line struct{ readings []*reading }

// dialects differ in what they take for a separator, a quote or a reserved word.
var dialects = []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}

// Parse parses a command line. A line that no shell would accept is a Line too: no rule covers it, and every rule may be about it.
func Parse(text string) Line {
	var l Line
	for _, d := range dialects {
		r := &reading{dialect: d}
		r.parse(text, 0)
		l.readings = append(l.readings, r)
	}
	return l
}

// reading is a line in one dialect.
type reading struct {
	dialect  syntax.LangVariant
	commands []command
	opaque   bool // the line holds more than simple commands of literal words, so no rule covers it
	unknown  bool // the line may run commands that are not in commands
	moves    bool // the line may change its working directory, or that of a command
	said     []said
	parsed   int  // bytes
	prefix   bool // it is the prefix of a rule, which names what it means itself
}

// command is a simple command: a program or builtin with its arguments.
type command struct {
	words    []word
	inner    bool // another command runs it, and a rule that covers that one covers it
	possible bool // it may be only an argument
	reach    int  // how many words a rule must have to cover what this command runs
}

// never is a reach that no rule has.
const never = 1 << 30

// parse adds the commands of a text.
func (r *reading) parse(text string, depth int) {
	r.parsed += len(text)
	if len(text) > maxText || r.parsed > maxTexts || depth > maxDepth || nested(text) || strings.ContainsAny(text, "\x00\r") || joined.MatchString(text) {
		r.opaque, r.unknown = true, true
		return
	}
	stmts, err := statements(text, r.dialect)
	if err != nil {
		r.opaque, r.unknown = true, true
	}
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool { return r.visit(n, depth) })
	}
}

// joined is what may be a comment with a backslash at its end. Shells end it there, but the library goes on in the next line.
var joined = regexp.MustCompile(`(^|[\s;&|()<>` + "`" + `])#[^\n]*\\\n`)

// nested tells whether a text has very many open parentheses.
func nested(text string) bool {
	open := 0
	for _, c := range []byte(text) {
		switch c {
		case '(':
			open++
		case ')':
			open = max(open-1, 0)
		}
		if open > maxNesting {
			return true
		}
	}
	return false
}

// statements are those before the first error: a shell runs them before it comes to that. The text may be hostile, and a panic of the
// library must not end the daemon.
func statements(text string, dialect syntax.LangVariant) (all []*syntax.Stmt, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("parse: %v", p)
		}
	}()
	// The library may yield again after a loop that ends early, so this one does not.
	for stmt, failed := range syntax.NewParser(syntax.Variant(dialect)).StmtsSeq(strings.NewReader(text)) {
		if err = cmp.Or(err, failed); err == nil {
			all = append(all, stmt)
		}
	}
	return all, err
}

// visit looks at a node of the syntax tree. Nodes that are not listed here can run anything, or change what later commands mean.
func (r *reading) visit(n syntax.Node, depth int) bool {
	switch n := n.(type) {
	case nil, *syntax.CallExpr, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.Comment, *syntax.BinaryCmd,
		*syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.TimeClause:
	case *syntax.Stmt:
		if call, ok := n.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			r.top(call, n.Redirs, depth)
		}
	case *syntax.Assign:
		r.opaque = true
		r.assigned(n)
	case *syntax.Redirect:
		r.opaque = r.opaque || !harmless(n)
	case *syntax.DeclClause:
		r.opaque = true
		r.add(command{words: []word{{text: n.Variant.Value}}})
	case *syntax.ParamExp:
		r.opaque = true
		r.unknown = r.unknown || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps // ${x@P} runs what is in x
	case *syntax.ExtGlob:
		r.opaque, r.unknown = true, true // many shells have none, and read something else
	default:
		r.opaque = true
	}
	return true
}

func (r *reading) add(c command) {
	if len(r.commands) == maxCommands {
		r.opaque, r.unknown = true, true
		return
	}
	r.commands = append(r.commands, c)
}

// top adds a command as it is written in the line.
func (r *reading) top(call *syntax.CallExpr, redirects []*syntax.Redirect, depth int) {
	words := make([]word, len(call.Args))
	for i, w := range call.Args {
		words[i] = wordOf(w)
	}
	in := stdin{}
	for _, redirect := range redirects {
		in.take(redirect)
	}
	r.call(command{words: words, inner: depth > 0}, in, depth)
}

// call adds a command, and those that it runs. It returns the command's reach.
func (r *reading) call(c command, in stdin, depth int) int {
	if runs := runnerOf(base(c.words[0].text)); runs != nil && c.words[0].kind == literal && !r.prefix {
		l := &look{reading: r, words: c.words, possible: c.possible, stdin: in, depth: depth}
		runs(l)
		c.reach = min(l.reach, never)
	} else if !inert(c.words) {
		r.say(in.text, c.words...)
	}
	r.opaque = r.opaque || evaluates(c.words)
	r.add(c)
	return c.reach
}

// stdin is what a line gives a command as its input, if the line says it.
type stdin struct {
	text  string
	given bool
}

func (in *stdin) take(n *syntax.Redirect) {
	body := n.Hdoc
	if n.Op == syntax.WordHdoc {
		body = n.Word
	}
	if body == nil {
		return
	}
	if w := wordOf(body); w.kind != unknown {
		in.text, in.given = w.text, true
	}
}

// harmless tells whether a redirection touches no file: one of a descriptor, a here-document, or one to /dev/null.
func harmless(n *syntax.Redirect) bool {
	target := wordOf(n.Word).text // what a shell expands in it makes the line opaque anyway
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	case syntax.DplIn, syntax.DplOut:
		return strings.Trim(target, "0123456789-") == ""
	}
	return target == "/dev/null"
}
