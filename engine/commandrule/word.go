package commandrule

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// kind is how much is known about a word before a shell expands it. Larger values mean
// less.
type kind int

const (
	// literal means that the command gets exactly text.
	literal kind = iota
	// pattern means that text is a file name pattern, has alternatives in braces, or begins
	// with a home directory.
	pattern
	// unknown means that the shell computes the word. text is its literal part.
	unknown
)

// word is a word of a simple command without its quotes.
type word struct {
	text string
	kind kind
}

// option reports whether a word looks like an option.
func (w word) option() bool {
	return len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+')
}

// wordOf converts a word of the syntax tree.
func wordOf(w *syntax.Word) word {
	var all word
	for i, part := range w.Parts {
		p := partOf(part, i == 0)
		all.text += p.text
		all.kind = max(all.kind, p.kind)
	}
	return all
}

// partOf converts a part of a word. first means that it begins the word, where ~ is a home
// directory.
func partOf(part syntax.WordPart, first bool) word {
	switch p := part.(type) {
	case *syntax.Lit:
		return bare(p.Value, first)
	case *syntax.SglQuoted:
		if !p.Dollar {
			return word{text: p.Value}
		}
		text, _, _ := expand.Format(nil, p.Value, nil) // a format without verbs has only escapes and does not fail
		return word{text: text}
	case *syntax.DblQuoted:
		var all word
		for _, part := range p.Parts {
			if lit, ok := part.(*syntax.Lit); ok {
				all.text += quoted(lit.Value)
			} else {
				all.kind = unknown
			}
		}
		return all
	}
	return word{kind: unknown}
}

// bare converts text outside of quotes.
func bare(raw string, first bool) word {
	var text strings.Builder
	w := word{}
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw):
			if i++; raw[i] != '\n' {
				text.WriteByte(raw[i])
			}
			continue
		case strings.IndexByte("*?[{", c) >= 0, c == '~' && first && i == 0:
			w.kind = pattern
		case c == '$': // a $ that this dialect does not expand; others may
			w.kind = unknown
		}
		text.WriteByte(raw[i])
	}
	w.text = text.String()
	return w
}

// quoted converts text between double quotes, where a backslash escapes only some
// characters.
func quoted(raw string) string { return unescaped.Replace(raw) }

var unescaped = strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", `\"`, `"`, "\\\n", "")

// base returns the name of a program without its directory.
func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// textOf joins words with blanks, as eval and ssh do. ok is false if a shell computes any
// of them.
func textOf(words []word) (text string, ok bool) {
	all := make([]string, len(words))
	for i, w := range words {
		if w.kind == unknown {
			return "", false
		}
		all[i] = w.text
	}
	return strings.Join(all, " "), true
}
