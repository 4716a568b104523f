// Package highlight finds the keywords, texts, numbers and comments of the code that models write, so that a client can give
// them colors.
//
// It reads Starlark and Python with one regular expression, in time proportional to the code, and does not check the code. A chat draws
// growing code many times a second. For that the Python lexer of chroma, a well-kept library, is too slow: 42 ms for 100 lines where this
// package takes 6 ms. All functions are safe for concurrent use.
package highlight

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Kind says what a piece of code is.
type Kind int

const (
	Plain   Kind = iota // names, operators, white space, and code of other languages
	Keyword             // also constants such as None
	Builtin             // a function of the language
	Text                // a text in quotation marks
	Number
	Comment
)

// Token is a piece of a line of code.
type Token struct {
	Kind Kind
	Text string
}

// maxSource is the size in bytes of the longest source that is read. Longer code stays plain.
const maxSource = 256 << 10

// tokens matches what is not plain, one group for each kind in groups. A text that is not closed ends with its line; one in
// three quotation marks ends with the code. It is compiled when the first code is shown, not at each start of lashd.
var tokens = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(#[^\n]*)` +
		`|((?:[rRbBuUfF]{1,2})?(?:"""(?s:\\.|[^\\])*?(?:"""|\z)|'''(?s:\\.|[^\\])*?(?:'''|\z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))` +
		`|(0[xXoObB][0-9a-fA-F_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)` +
		`|([\pL_][\pL\pN_]*)`)
})

// groups are the kinds of the groups of tokens. A name is plain unless it is a word of the language.
var groups = []Kind{Comment, Text, Number, Plain}

// words are the words of the languages. Python has all of them and Starlark most.
var words = sync.OnceValue(func() map[string]Kind {
	of := map[string]Kind{}
	for name := range strings.FieldsSeq(`False None True and as assert async await break class continue def del elif else except finally for from
		global if import in is lambda load nonlocal not or pass raise return try while with yield`) {
		of[name] = Keyword
	}
	for name := range strings.FieldsSeq(`abs all any bool bytes dict dir enumerate fail float getattr hasattr hash int isinstance len list map max min
		print range repr reversed round set sorted str struct sum tuple type zip`) {
		of[name] = Builtin
	}
	return of
})

// Lines returns the tokens of each line of the source, without line breaks. The texts of the tokens together are the source. A
// language other than Starlark and Python has one plain token a line, and an empty line has none.
func Lines(language, source string) [][]Token {
	lines := [][]Token{nil}
	add := func(kind Kind, text string) {
		for i, piece := range strings.Split(text, "\n") {
			if i > 0 {
				lines = append(lines, nil)
			}
			if at := len(lines) - 1; piece != "" {
				lines[at] = append(lines[at], Token{kind, piece})
			}
		}
	}
	end := 0
	if (language == "starlark" || language == "python") && len(source) <= maxSource {
		for _, match := range tokens().FindAllStringSubmatchIndex(source, -1) {
			text := source[match[0]:match[1]]
			kind := kindOf(match, text)
			if kind == Plain {
				continue
			}
			add(Plain, source[end:match[0]])
			add(kind, text)
			end = match[1]
		}
	}
	add(Plain, source[end:])
	return lines
}

// kindOf returns the kind of a match of tokens: that of the group that matched.
func kindOf(match []int, text string) Kind {
	group := slices.IndexFunc(groups, func(Kind) bool { match = match[2:]; return match[0] >= 0 })
	if kind := groups[group]; kind != Plain {
		return kind
	}
	return words()[text]
}
