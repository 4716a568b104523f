package commandrule

import (
	"regexp"
	"slices"
	"strings"
)

// runnerOf returns the function that finds the commands in the arguments of a program or
// builtin. Nil means that the program is not known to run its arguments.
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

// shells are the programs that run the script or the line in their arguments.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "posh", "yash", "lksh"}

// rebinders are commands that change the meaning of names, or run text in ways that no
// table can describe.
var rebinders = []string{"alias", "hash", "enable", "mapfile", "readarray", "compgen", "complete", "bind", "fc", "at", "batch", "crontab"}

// look is the search for the commands that one command runs.
type look struct {
	*reading
	words    []word
	possible bool
	stdin    stdin
	depth    int
	// reach is the result: the number of words that a rule must have.
	reach int
}

// lost records that it cannot be known what the command runs.
func (l *look) lost() { l.unknown, l.reach = true, never }

// runWords adds the command that begins at word number at. A rule must include that
// command's words.
func (l *look) runWords(at int, words []word) {
	if l.depth >= maxDepth || len(l.commands) == maxCommands {
		l.lost()
		return
	}
	inner := l.call(command{words: words, inner: true, possible: l.possible}, l.stdin, l.depth+1)
	l.reach = max(l.reach, at+max(inner, 1))
}

// text adds the commands in words that a shell parses as a line. reach is the number of
// words that a rule must have.
func (l *look) text(words []word, reach int) {
	l.reach = max(l.reach, reach)
	text, ok := textOf(words)
	if !ok {
		l.lost()
		return
	}
	opaque := l.opaque
	l.parse(text, l.depth+1)
	l.opaque = opaque // a rule with this reach includes the whole text
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

// source runs the file in its first argument.
func (l *look) source() {
	if len(l.words) > 1 {
		l.file(1)
	}
}

// inputs matches file names that stand for a program's own standard input.
var inputs = regexp.MustCompile(`^/+(dev|proc/(self|thread-self))/+(stdin|fd/+[0-9]+)/*$`)

// file adds the command that runs a file. A name without a slash is taken as one in the
// working directory.
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

// moving handles builtins that change the working directory.
func (l *look) moving() { l.moves = true }

// shell handles a shell with a line (-c), with a file, or with neither, when it reads its
// input.
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
			l.say("", l.words...) // fish accepts lines in options
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

// input handles a shell that runs its standard input.
func (l *look) input() {
	if !l.stdin.known {
		l.lost()
		return
	}
	l.text([]word{{text: l.stdin.text}}, never)
}

// find handles find, which runs commands on the files that it finds.
func (l *look) find() { l.actions([]string{"-exec", "-execdir", "-ok", "-okdir"}) }

// fd handles fd, whose options may contain the beginning of a command.
func (l *look) fd() {
	actions := []string{"-x", "-X", "--exec", "--exec-batch"}
	for _, w := range l.words[1:] {
		if clustered.MatchString(w.text) && !slices.Contains(actions, w.text) {
			l.lost()
		}
	}
	l.actions(actions)
}

// clustered matches options of fd that contain the beginning of a command, or precede it.
var clustered = regexp.MustCompile(`^(-[A-Za-z0-9]*[xX].*|--exe.*)$`)

// actions adds the commands that follow any of the names, each up to the word that ends it.
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

// ends reports whether a word ends the command before it. A plus does so only after {}.
func ends(command []word, w word) bool {
	return w.text == ";" || w.text == "+" && len(command) > 0 && strings.Contains(command[len(command)-1].text, "{}")
}

// action adds the command in the words from begin up to end.
func (l *look) action(begin, end int) {
	if begin < end {
		l.runWords(begin, replaced(l.words[begin:end], "{}"))
	}
}

// mayBe reports whether a shell may expand a word to one of the names. Shells leave empty
// braces unchanged.
func (w word) mayBe(names []string) bool {
	return w.kind == unknown || w.kind == pattern && w.text != "{}" && slices.ContainsFunc(names, func(name string) bool { return mayMatch(w, name) == Maybe })
}

// replaced returns words with those that contain mark as unknown, because the program
// replaces it, and one more unknown word.
func replaced(words []word, mark string) []word {
	all := slices.Clone(words)
	for i := range all {
		if strings.Contains(all[i].text, mark) {
			all[i].kind = unknown
		}
	}
	return append(all, word{kind: unknown})
}

// textAfterOptions handles programs that pass their operands to a shell as a line, locally
// or on another host.
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

// parallel handles parallel, which inserts arguments into a command or a line.
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
