package commandrule

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// kind says how much is known of a word before a shell expands it.
type kind int

const (
	literal kind = iota // text is what the command gets
	pattern             // text is a pattern of file names, a list of alternatives in braces, or begins in a home directory
	unknown             // the shell computes it; text is what of it is literal
)

// word is a word of a simple command without its quotes.
type word struct {
	text string
	kind kind
}

func (w word) option() bool {
	return len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+')
}

func wordOf(w *syntax.Word) word {
	var all word
	for i, part := range w.Parts {
		p := partOf(part, i == 0)
		all.text += p.text
		all.kind = max(all.kind, p.kind)
	}
	return all
}

func partOf(part syntax.WordPart, first bool) word {
	switch p := part.(type) {
	case *syntax.Lit:
		return bare(p.Value, first)
	case *syntax.SglQuoted:
		if !p.Dollar {
			return word{text: p.Value}
		}
		text, _, _ := expand.Format(nil, p.Value, nil) // without arguments it has only escapes, and does not fail
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

// bare is text outside of quotes.
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
		case c == '$': // where nothing follows that a shell expands; dialects differ on that
			w.kind = unknown
		}
		text.WriteByte(raw[i])
	}
	w.text = text.String()
	return w
}

// quoted is text between double quotes, where a backslash is one unless something follows that it makes literal.
func quoted(raw string) string { return unescaped.Replace(raw) }

var unescaped = strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", `\"`, `"`, "\\\n", "")

// base is the name of a program without its directory.
func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// textOf joins words with blanks, as eval and ssh do. ok is false if a word is not known.
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
