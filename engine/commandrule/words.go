package commandrule

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// said is text that a program gets as arguments, input or variables, as the names in it. The program may run it, because it is
// unknown what every program does with its arguments.
type said map[string]bool

// say records what a command gets, unless the command is known to be inert.
func (r *reading) say(input string, words ...word) {
	var all []string
	for _, w := range words {
		all = append(all, w.text)
	}
	text, names := strings.Join(append(all, input), "\n"), said{}
	names.add(text)
	if strings.Contains(text, `\`) {
		names.add(escape.ReplaceAllString(text, " "))
	}
	r.said = append(r.said, names)
}

// assigned records the value of a variable. Programs run the value of PAGER, for example,
// and shells that of PS4.
func (r *reading) assigned(n *syntax.Assign) {
	if n.Value != nil {
		r.say("", wordOf(n.Value))
	}
}

// inert reports whether a command never runs its arguments.
func inert(words []word) bool {
	name := base(words[0].text)
	switch {
	case name == "git":
		return len(words) == 1 || words[1].kind == literal && slices.Contains(inertGit, words[1].text)
	case slices.Contains(evaluators, name):
		return !evaluates(words)
	case slices.Contains([]string{"rg", "sort"}, name):
		return !slices.ContainsFunc(words, func(w word) bool { return strings.HasPrefix(w.text, "--pre") || strings.HasPrefix(w.text, "--comp") })
	}
	return slices.Contains(inertPrograms, name)
}

// inertPrograms are programs that never run their arguments, whatever the options.
var inertPrograms = []string{
	":", "basename", "break", "cat", "cd", "chgrp", "chmod", "chown", "cmp", "comm", "continue", "cut", "date", "df", "diff", "dirname", "du", "echo",
	"egrep", "exit", "expr", "false", "fgrep", "file", "grep", "head", "id", "jq", "kill", "locate", "ls", "lsof", "mkdir", "nl", "paste", "pgrep",
	"pidof", "pkill", "popd", "ps", "pushd", "pwd", "readlink", "realpath", "return", "rm", "rmdir", "seq", "sha256sum", "shift", "sleep", "stat", "tac",
	"tail", "tee", "tr", "tree", "true", "type", "uniq", "wc", "whereis", "which",
}

// inertGit are the subcommands of git that never run their arguments.
var inertGit = []string{
	"add", "blame", "branch", "checkout", "cherry-pick", "clean", "commit", "describe", "diff", "init", "log", "ls-files", "merge", "mv", "reset", "restore",
	"rev-parse", "revert", "rm", "show", "stash", "status", "switch", "tag",
}

// evaluators are builtins that run substitutions in the names that they get, as in a[$(x)].
var evaluators = []string{"[", "getopts", "let", "printf", "read", "test", "unset", "wait"}

// evaluates reports whether a command is such a builtin with a substitution in its
// arguments.
func evaluates(words []word) bool {
	return slices.Contains(evaluators, base(words[0].text)) && slices.ContainsFunc(words[1:], func(w word) bool {
		return strings.Contains(w.text, "[") && strings.ContainsAny(w.text, "$`")
	})
}

// mentions reports whether the line gives some program all names of a prefix.
func (r *reading) mentions(p Prefix) bool {
	return slices.ContainsFunc(r.said, func(s said) bool { return s.names(p) })
}

// names reports whether a text contains all names of a prefix.
func (s said) names(p Prefix) bool {
	return !slices.ContainsFunc(p.words, func(w word) bool {
		name := strings.ToLower(base(strings.TrimRight(w.text, "/")))
		return name != "" && !s[name]
	})
}

// escape matches an escaped character as many languages write it, such as \n.
var escape = regexp.MustCompile(`\\[a-z]`)

// name matches the possible name of a program. A name before a slash is that of a
// directory.
var name = regexp.MustCompile(`[\w.+-]+/?`)

// add adds the names in a text.
func (s said) add(text string) {
	for _, found := range name.FindAllString(strings.ToLower(text), -1) {
		s[strings.Trim(found, ".")] = true
	}
}
