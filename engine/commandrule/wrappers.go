package commandrule

import (
	"slices"
	"strings"
)

// wrapper describes the arguments of a program that runs the command in them.
type wrapper struct {
	// flags are the short options without a value.
	flags string
	// valued are the short options with a value, in the same word or in the next.
	valued string
	// long are the long options with a value in the next word. Others have it after =, or
	// have none.
	long []string
	// operands is the number of words before the command.
	operands int
	// assigns means that NAME=value may precede the command.
	assigns bool
	// text is the short option whose value is a line for a shell.
	text string
	// alone has the flags with which it runs nothing.
	alone string
	// shell means that it starts a shell if there is no command.
	shell bool
	// appends means that it adds words to the command.
	appends bool
}

// wrappers are the known wrappers by name. An option that is missing here makes the search
// for the command uncertain, and then more rules apply.
var wrappers = map[string]wrapper{
	"env": {flags: "i0v", valued: "uCa", long: []string{"unset", "chdir", "argv0"}, text: "S", assigns: true},
	"sudo": {
		flags: "ABbEeHiKklNnPSsVv", valued: "ughpCDRrtTUc", assigns: true, shell: true,
		long: []string{"user", "group", "host", "prompt", "close-from", "chdir", "chroot", "role", "type", "command-timeout", "other-user"},
	},
	"doas":    {flags: "Lns", valued: "uCa", shell: true},
	"run0":    {shell: true},
	"pkexec":  {long: []string{"user"}, shell: true},
	"su":      {flags: "lmpfP", valued: "gGsw", text: "c", long: []string{"group", "shell", "supp-group"}, operands: 2, shell: true},
	"runuser": {flags: "lmpfP", valued: "uggGsw", text: "c", long: []string{"user", "group", "shell"}, shell: true},
	"nice":    {flags: "0123456789", valued: "n", long: []string{"adjustment"}},
	"ionice":  {flags: "t", valued: "cnpPu", long: []string{"class", "classdata"}},
	"chrt":    {flags: "abdfiormvpR", valued: "TPD", operands: 1},
	"taskset": {flags: "acp", operands: 1},
	"nohup":   {}, "setsid": {flags: "cfw"}, "command": {flags: "pvV", alone: "vV"}, "builtin": {}, "exec": {flags: "cl", valued: "a"},
	"time":    {flags: "pvaqlh", valued: "fo", long: []string{"format", "output"}},
	"timeout": {flags: "fpv", valued: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"stdbuf":  {valued: "ioe", long: []string{"input", "output", "error"}},
	"xargs": {
		flags: "0oprtxe", valued: "adEILnPs", appends: true,
		long: []string{"arg-file", "delimiter", "eof", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"},
	},
	"busybox": {}, "toybox": {}, "coproc": {}, "noglob": {}, "nocorrect": {}, "-": {},
	"chroot": {operands: 1, shell: true}, "flock": {flags: "sexnouFv", valued: "wE", text: "c", long: []string{"timeout", "wait", "conflict-exit-code"}, operands: 1},
	"script": {flags: "aefqt", valued: "EIOBTmo", text: "c", operands: 1, shell: true},
	"watch":  {flags: "bcdegptxwrC", valued: "nq", long: []string{"interval", "equexit"}},
	"ssh":    {flags: "46AaCfGgKkMNnqsTtVvXxYy", valued: "BbcDEeFIiJLlmOoPpQRSWw", operands: 1, shell: true},
	"parallel": {
		flags: "0kqtuvXm", valued: "jaInLNPsS", long: []string{"jobs", "arg-file", "max-args", "joblog", "results", "sshlogin", "delay", "timeout"},
	},
	"strace": {}, "ltrace": {}, "gdb": {}, "valgrind": {}, "perf": {operands: 1},
	"unshare": {shell: true}, "nsenter": {shell: true}, "setpriv": {}, "prlimit": {},
	"numactl": {}, "choom": {}, "systemd-run": {}, "systemd-inhibit": {}, "bwrap": {},
	"firejail": {}, "proot": {}, "fakeroot": {shell: true}, "dbus-run-session": {},
	"unbuffer": {}, "rlwrap": {}, "setarch": {shell: true}, "linux32": {shell: true},
	"linux64": {shell: true}, "tini": {}, "dumb-init": {}, "gosu": {operands: 1}, "su-exec": {operands: 1},
	"xvfb-run": {}, "torsocks": {}, "proxychains": {}, "proxychains4": {}, "caffeinate": {},
	"entr": {appends: true}, "npx": {}, "bunx": {}, "pnpx": {}, "uvx": {},
	"catchsegv": {}, "cpulimit": {}, "daemonize": {}, "start-stop-daemon": {}, "chpst": {},
	"setuidgid": {operands: 1}, "softlimit": {}, "cgexec": {}, "ip": {}, "winpty": {},
}

// wrapper adds the commands that a wrapper runs.
func (l *look) wrapper(w wrapper) {
	at, sure := w.skip(l.words)
	line, last := w.line(l.words[:at])
	l.moves = l.moves || !sure || moves(l.words[:at])
	if w.assigns {
		l.say("", l.words[:at]...)
	}
	switch {
	case last > 0:
		l.text([]word{line}, last+1)
		if strings.Contains(line.text, `\`) { // env interprets escapes in the line
			l.lost()
		}
		if rest := l.words[last+1:]; len(rest) > 0 { // env appends them to the command in the line
			l.text(append([]word{line}, rest...), never)
		}
	case len(l.words) > 1 && l.words[1].option() && strings.ContainsAny(l.words[1].text, w.alone):
	case at == len(l.words) && !sure:
		l.lost()
	case at == len(l.words):
		if w.shell {
			l.input()
		}
	case !sure && w.appends: // it may add words or replace some
		l.runWords(at, slices.Clip(l.words[at:]))
		l.lost()
	case !sure:
		l.guess(at)
	case w.appends:
		l.runWords(at, replaced(l.words[at:], mark(l.words[:at])))
	default:
		l.runWords(at, slices.Clip(l.words[at:]))
	}
}

// moves reports whether an option makes the command run in another directory.
func moves(words []word) bool {
	return slices.ContainsFunc(words[1:], func(x word) bool {
		return x.option() && (strings.HasPrefix(x.text, "--ch") || strings.ContainsAny(x.text, "CDi"))
	})
}

// mark returns the text that xargs replaces in the command.
func mark(words []word) string {
	for i, w := range words {
		switch {
		case !w.option():
		case strings.HasPrefix(w.text, "-I") && len(w.text) > 2:
			return w.text[2:]
		case strings.HasSuffix(w.text, "I") && i+1 < len(words):
			return words[i+1].text
		}
	}
	return "{}"
}

// maxGuesses is the number of words that are tried as the beginning of a command.
const maxGuesses = 100

// guess treats every word from at on as the possible beginning of a command. Only the first
// counts as certain.
func (l *look) guess(at int) {
	few := len(l.words)-at <= maxGuesses
	for i := at; i < len(l.words) && (few || i == at); i++ {
		l.runWords(i, slices.Clip(l.words[i:]))
		l.possible = true
	}
	if !few {
		l.lost()
	}
}

// skip returns the index of the word at which the command begins. sure is false if an
// option is unknown, which may have a value, or if a shell computes a word before the
// command.
func (w wrapper) skip(words []word) (at int, sure bool) {
	i, ended, operands := 1, false, w.operands
	for sure = true; i < len(words); i++ {
		x := words[i]
		switch {
		case x.kind == unknown, x.kind == pattern && operands > 0: // it may expand to an option, a command, several words, or nothing
			return i, false
		case x.text == "--":
			ended = true
		case !ended && strings.HasPrefix(x.text, "-"):
			next, known := w.option(x.text)
			if next > 0 && i+1 < len(words) && words[i+1].kind != literal {
				return i, false // it may expand to several words
			}
			i, sure = i+next, sure && known
		case w.assigns && strings.Contains(x.text, "="): // env accepts any name
		case operands > 0:
			operands--
		default:
			return i, sure
		}
	}
	return len(words), sure
}

// option returns how many words after an option are its value. known is false for an
// unknown option.
func (w wrapper) option(text string) (next int, known bool) {
	if name, ok := strings.CutPrefix(text, "--"); ok {
		if slices.Contains(w.long, name) {
			return 1, true
		}
		name, _, _ := strings.Cut(name, "=")
		return 0, slices.Contains(w.long, name)
	}
	for i, c := range text[1:] {
		switch {
		case strings.ContainsRune(w.valued+w.text, c) && i+2 == len(text):
			return 1, true
		case strings.ContainsRune(w.valued+w.text, c):
			return 0, true
		case !strings.ContainsRune(w.flags, c):
			return 0, false
		}
	}
	return 0, true
}

// lineOption reports whether a long option has a shell line as its value, or may be an
// abbreviation of such an option.
func lineOption(name string) bool {
	return len(name) > 2 && slices.ContainsFunc([]string{"--command", "--session-command", "--split-string"}, func(long string) bool { return strings.HasPrefix(long, name) })
}

// line returns the shell line in an option of a wrapper, and the index of the last word
// that has a part of it. Index 0 means that there is none.
func (w wrapper) line(words []word) (line word, at int) {
	if w.text == "" {
		return word{}, 0
	}
	for i := 1; i < len(words); i++ {
		x := words[i]
		if name, rest, given := strings.Cut(x.text, "="); lineOption(name) {
			switch {
			case given:
				return word{text: rest, kind: x.kind}, i
			case i+1 < len(words):
				return words[i+1], i + 1
			}
		}
		if !x.option() || strings.HasPrefix(x.text, "--") {
			continue
		}
		_, rest, found := strings.Cut(x.text, w.text)
		switch {
		case !found:
		case rest != "":
			return word{text: rest, kind: x.kind}, i
		case i+1 < len(words):
			return words[i+1], i + 1
		}
	}
	return word{}, 0
}
