package commandrule

import (
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Programs are the programs that a line runs or may run, for an index of rules by program.
type Programs struct {
	// Names has the names of programs without their directory, folded by Prefix.Program. It also has every name that another
	// program gets as an argument and may run.
	Names map[string]bool
	// Paths means that the line names a program with a slash.
	Paths bool
	// Any means that the line may run any program.
	Any bool
}

// Programs returns the programs of the line, run in dir. A rule whose program is not among them neither covers the line nor is the
// line about it.
func (l Line) Programs(dir string, where Where) Programs {
	p := Programs{Names: map[string]bool{}}
	for _, r := range l.readings {
		p.Any = p.Any || r.unknown
		for _, c := range r.commands {
			p.add(r, c.words[0], dir, where)
		}
		for _, s := range r.said {
			for name := range s {
				p.Names[name] = true
			}
		}
	}
	return p
}

// add adds the program of a command.
func (p *Programs) add(r *reading, w word, dir string, where Where) {
	p.Names[fold(base(w.text))] = true
	if w.kind != literal {
		p.Any = true
	}
	if !isPath(w) {
		return
	}
	p.Paths = true
	if r.moves && !strings.HasPrefix(w.text, "/") {
		p.Any = true
		return
	}
	at := where(dir, w.text)
	p.Any = p.Any || len(at) == 0
	for _, name := range at {
		p.Names[fold(base(name))] = true
	}
}

// Program returns the name of the program that the prefix begins with, folded and without its directory. It is empty if the prefix
// is not the beginning of a command. path means that the prefix names a file or a directory of programs.
func (p Prefix) Program() (name string, path bool) {
	if !p.ok {
		return "", false
	}
	return fold(base(strings.TrimRight(p.words[0].text, "/"))), isPath(p.words[0])
}

// fold returns the same text for names that differ only in case.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return unicode.ToLower(least)
	}, name)
}

// Words returns the simple commands of the line, each as its words. ok is false unless every shell reads the line as the same commands
// of literal words, which are all that it runs.
func (l Line) Words() (commands [][]string, ok bool) {
	for i, r := range l.readings {
		if r.opaque || r.unknown {
			return nil, false
		}
		at := 0
		for _, c := range r.commands {
			if c.inner || hasUnknown(c.words) {
				return nil, false
			}
			words := make([]string, len(c.words))
			for i, w := range c.words {
				words[i] = w.text
			}
			if i > 0 && (at >= len(commands) || !slices.Equal(commands[at], words)) {
				return nil, false
			}
			if i == 0 {
				commands = append(commands, words)
			}
			at++
		}
		if at != len(commands) {
			return nil, false
		}
	}
	return commands, len(commands) > 0
}

// Commands returns the simple commands of the line as a shell would read each alone; none if lashd cannot tell them apart.
func (l Line) Commands() (texts []string) {
	commands, ok := l.Words()
	if !ok {
		return nil
	}
	for _, words := range commands {
		quoted := make([]string, len(words))
		for i, w := range words {
			text, err := syntax.Quote(w, syntax.LangPOSIX)
			if err != nil { // a byte that no shell can quote
				return nil
			}
			quoted[i] = text
		}
		texts = append(texts, strings.Join(quoted, " "))
	}
	return texts
}
