// Package commandrule decides whether an approval rule applies to a command line.
//
// It parses a line as shells do and compares a rule with the simple commands in it. It errs
// on the safe side: a rule that allows must cover everything that the line can run, and a
// rule that denies applies if it possibly matches. The package runs nothing and reads no
// files. All values are safe for concurrent use.
package commandrule

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Limits that keep the cost of a hostile line below about 100 ms. A line beyond them counts
// as unparsable.
const (
	// maxText is the size of one line in bytes.
	maxText = 32 << 10 // bytes of a line
	// maxTexts is the size in bytes of a line together with all lines in it, such as those
	// of sh -c.
	maxTexts = 128 << 10
	// maxNesting is the number of nested parentheses.
	maxNesting = 100
	// maxDepth is the number of nested lines.
	maxDepth = 8
	// maxCommands is the number of simple commands.
	maxCommands = 2000
)

// Line is a parsed command line. It has one reading for each dialect, because it is unknown
// which shell will run it.
type Line struct{ readings []*reading }

// dialects are the shell languages that differ in separators, quotes and reserved words.
var dialects = []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}

// Parse parses a command line. It never fails: a line that no shell accepts is covered by
// no rule, and every rule may apply to it.
func Parse(text string) Line {
	var l Line
	for _, d := range dialects {
		r := &reading{dialect: d}
		r.parse(text, 0)
		l.readings = append(l.readings, r)
	}
	return l
}

// reading is a line as one dialect parses it.
type reading struct {
	dialect  syntax.LangVariant
	commands []command
	// opaque means that the line has more than simple commands with literal words, so no
	// rule covers it.
	opaque bool
	// unknown means that the line may run commands that are not in commands.
	unknown bool
	// moves means that the line may change its working directory, or that of a command in
	// it.
	moves bool
	// said has texts that programs get and may run.
	said []said
	// parsed is the number of bytes parsed so far.
	parsed int
	// prefix means that this is the prefix of a rule, so wrappers in it are not resolved.
	prefix bool
}

// command is a simple command: a program or builtin with its arguments.
type command struct {
	words []word
	// inner means that another command runs it. A rule that covers the other one covers it.
	inner bool
	// possible means that it may be only an argument.
	possible bool
	// reach is the number of words that a rule must have to cover what the command runs.
	reach int
}

// never is a reach that no rule has.
const never = 1 << 30

// parse adds the commands of a text. depth counts the lines around it.
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

// joined matches a possible comment with a backslash at its end. Shells end the comment
// there, but the parser library continues it on the next line.
var joined = regexp.MustCompile(`(^|[\s;&|()<>` + "`" + `])#[^\n]*\\\n`)

// nested reports whether a text has more than maxNesting open parentheses.
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

// statements returns the statements before the first error, because a shell runs them
// before it finds the error. It recovers from a panic of the library, since the text may be
// hostile.
func statements(text string, dialect syntax.LangVariant) (all []*syntax.Stmt, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("parse: %v", p)
		}
	}()
	// Do not leave this loop early: the library may yield again after that.
	for stmt, failed := range syntax.NewParser(syntax.Variant(dialect)).StmtsSeq(strings.NewReader(text)) {
		if err = cmp.Or(err, failed); err == nil {
			all = append(all, stmt)
		}
	}
	return all, err
}

// visit records what a node of the syntax tree can do. Nodes that are not listed can run
// anything or change the meaning of later commands, so they make the reading opaque.
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
		r.unknown = r.unknown || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps // ${x@P} runs the value of x
	case *syntax.ExtGlob:
		r.opaque, r.unknown = true, true // shells without extended globs parse this differently
	default:
		r.opaque = true
	}
	return true
}

// add appends a command, up to maxCommands.
func (r *reading) add(c command) {
	if len(r.commands) == maxCommands {
		r.opaque, r.unknown = true, true
		return
	}
	r.commands = append(r.commands, c)
}

// top adds a command that is written in the line itself.
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

// call adds a command together with those that it runs, and returns its reach.
func (r *reading) call(c command, in stdin, depth int) int {
	if runs := runnerOf(base(c.words[0].text)); runs != nil && c.words[0].kind == literal && !r.prefix {
		l := &look{reading: r, words: c.words, possible: c.possible, stdin: in, depth: depth}
		runs(l)
		c.reach = min(l.reach, never)
	} else if !inert(c.words) {
		r.say(in.text, c.words...)
	}
	if c.words[0].kind == literal && !r.prefix {
		c.reach = max(c.reach, optionReach(c.words))
	}
	r.opaque = r.opaque || evaluates(c.words)
	r.add(c)
	return c.reach
}

// stdin is the input of a command, if the line contains it.
type stdin struct {
	text  string
	known bool
}

// take reads the body of a here-document or here-string.
func (in *stdin) take(n *syntax.Redirect) {
	body := n.Hdoc
	if n.Op == syntax.WordHdoc {
		body = n.Word
	}
	if body == nil {
		return
	}
	if w := wordOf(body); w.kind != unknown {
		in.text, in.known = w.text, true
	}
}

// harmless reports whether a redirection touches no file: one of a descriptor, a
// here-document, or one to /dev/null.
func harmless(n *syntax.Redirect) bool {
	target := wordOf(n.Word).text // expansions in it make the line opaque anyway
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	case syntax.DplIn, syntax.DplOut:
		return strings.Trim(target, "0123456789-") == ""
	}
	return target == "/dev/null"
}
