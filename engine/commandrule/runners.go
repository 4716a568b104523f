package commandrule

import (
	"regexp"
	"slices"
	"strings"
)

// runnerOf is how to find what a program or builtin runs that runs what its arguments say; nil: it runs nothing, as far as is known.
func runnerOf(name string) func(*look) {
	switch name {
	case "eval":
		return (*look).eval
	case "trap":
		return (*look).trap
	case ".", "source":
		return (*look).source
	case "cd", "pushd", "popd":
		return (*look).moving
	case "find":
		return (*look).find
	case "fd", "fdfind":
		return (*look).fd
	case "watch", "ssh":
		return (*look).textAfterOptions
	case "parallel":
		return (*look).parallel
	}
	w, ok := wrappers[name]
	switch {
	case slices.Contains(shells, name):
		return (*look).shell
	case slices.Contains(rebinders, name):
		return (*look).lost
	case ok:
		return func(l *look) { l.wrapper(w) }
	}
	return nil
}

var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "posh", "yash", "lksh"}

// rebinders change what names mean, or run text in ways that no table can follow.
var rebinders = []string{"alias", "hash", "enable", "mapfile", "readarray", "compgen", "complete", "bind", "fc", "at", "batch", "crontab"}

// look finds what a command runs.
type look struct {
	*reading
	words    []word
	possible bool
	stdin    stdin
	depth    int
	reach    int // out: how many of the words a rule must have
}

// lost means that it cannot be known what the command runs.
func (l *look) lost() { l.unknown, l.reach = true, never }

// runWords adds a command that begins at a word. A rule must reach it.
func (l *look) runWords(at int, words []word) {
	if l.depth >= maxDepth || len(l.commands) == maxCommands {
		l.lost()
		return
	}
	inner := l.call(command{words: words, inner: true, possible: l.possible}, l.stdin, l.depth+1)
	l.reach = max(l.reach, at+max(inner, 1))
}

// text adds the commands of words that a shell reads as a line.
func (l *look) text(words []word, reach int) {
	l.reach = max(l.reach, reach)
	text, ok := textOf(words)
	if !ok {
		l.lost()
		return
	}
	opaque := l.opaque
	l.parse(text, l.depth+1)
	l.opaque = opaque // a rule that reaches here has all of the text
}

func (l *look) eval() { l.text(l.words[1:], len(l.words)) }

func (l *look) trap() {
	words := l.words[1:]
	if len(words) > 0 && words[0].text == "--" {
		words = words[1:]
	}
	if len(words) > 0 {
		l.text(words[:1], never)
	}
}

func (l *look) source() {
	if len(l.words) > 1 {
		l.file(1)
	}
}

// inputs are names of a program's own input.
var inputs = regexp.MustCompile(`^/+(dev|proc/(self|thread-self))/+(stdin|fd/+[0-9]+)/*$`)

// file runs a file, which is in the working directory unless it says where.
func (l *look) file(at int) {
	words := slices.Clone(l.words[at:])
	if inputs.MatchString(words[0].text) {
		l.input()
		return
	}
	if !isPath(words[0]) {
		words[0].text = "./" + words[0].text
	}
	l.runWords(at, words)
}

func (l *look) moving() { l.moves = true }

// shell is a shell with a line, with a file, or with neither: then it reads what to run.
func (l *look) shell() {
	i, line := 1, false
	for ; i < len(l.words); i++ {
		w := l.words[i]
		if w.kind != literal {
			l.lost()
			return
		}
		if !w.option() || w.text == "--" {
			break
		}
		if strings.HasPrefix(w.text, "--") || strings.Contains(w.text, "C") {
			l.say("", l.words...) // fish has lines in options
			if slices.Contains([]string{"--rcfile", "--init-file", "--command"}, w.text) {
				l.lost()
			}
			continue
		}
		line = line || strings.Contains(w.text, "c")
		if strings.HasSuffix(w.text, "o") || strings.HasSuffix(w.text, "O") {
			i++ // the name of a shell option
		}
		if strings.Contains(w.text, "s") {
			l.input()
			return
		}
	}
	if i < len(l.words) && (l.words[i].text == "--" || l.words[i].text == "-") {
		i++
	}
	switch {
	case i >= len(l.words):
		l.input()
	case line:
		l.text(l.words[i:i+1], i+1)
	default:
		l.file(i)
	}
}

// input is a shell that reads what to run from its input.
func (l *look) input() {
	if !l.stdin.given {
		l.lost()
		return
	}
	l.text([]word{{text: l.stdin.text}}, never)
}

// find runs commands on what it finds, each up to a word that ends it.
func (l *look) find() { l.actions([]string{"-exec", "-execdir", "-ok", "-okdir"}) }

func (l *look) fd() {
	actions := []string{"-x", "-X", "--exec", "--exec-batch"}
	for _, w := range l.words[1:] {
		if clustered.MatchString(w.text) && !slices.Contains(actions, w.text) {
			l.lost()
		}
	}
	l.actions(actions)
}

// clustered are options of fd that hold the beginning of a command, or come before it.
var clustered = regexp.MustCompile(`^(-[A-Za-z0-9]*[xX].*|--exe.*)$`)

func (l *look) actions(names []string) {
	if slices.ContainsFunc(l.words, func(w word) bool { return w.mayBe(names) }) {
		l.lost()
	}
	begin := 0
	for i, w := range l.words {
		switch {
		case begin == 0 && slices.Contains(names, w.text):
			begin = i + 1
		case begin > 0 && ends(l.words[begin:i], w):
			l.action(begin, i)
			begin = 0
		}
	}
	if begin > 0 {
		l.action(begin, len(l.words))
	}
}

// ends tells whether a word ends the command before it. A plus does only where what is found has its place.
func ends(command []word, w word) bool {
	return w.text == ";" || w.text == "+" && len(command) > 0 && strings.Contains(command[len(command)-1].text, "{}")
}

// action adds the command from one word up to another.
func (l *look) action(begin, end int) {
	if begin < end {
		l.runWords(begin, replaced(l.words[begin:end], "{}"))
	}
}

// mayBe tells whether a shell may make one of these names of a word. It leaves empty braces as they are.
func (w word) mayBe(names []string) bool {
	return w.kind == unknown || w.kind == pattern && w.text != "{}" && slices.ContainsFunc(names, func(name string) bool { return mayMatch(w, name) == Maybe })
}

// replaced are words in which a program puts something else in the place of a mark.
func replaced(words []word, mark string) []word {
	all := slices.Clone(words)
	for i := range all {
		if strings.Contains(all[i].text, mark) {
			all[i].kind = unknown
		}
	}
	return append(all, word{kind: unknown})
}

// textAfterOptions is a program whose operands a shell reads as a line, here or elsewhere.
func (l *look) textAfterOptions() {
	at, sure := wrappers[base(l.words[0].text)].skip(l.words)
	if at == len(l.words) {
		l.lost()
		return
	}
	if !sure {
		l.guess(at)
	}
	l.say("", l.words[:at]...) // options such as ProxyCommand
	l.text(l.words[at:], never)
}

// parallel takes words or a line, and puts others into it.
func (l *look) parallel() {
	at, _ := wrappers["parallel"].skip(l.words)
	words := l.words[at:]
	if end := slices.IndexFunc(words, func(w word) bool { return strings.HasPrefix(w.text, ":::") }); end >= 0 {
		words = words[:end]
	}
	if len(words) == 0 {
		l.lost()
		return
	}
	l.text(words, never)
	l.runWords(at, replaced(words, "{"))
}
