// Package highlight finds the keywords, texts, numbers and comments of the code that models write, so that a client can give
// them colors.
//
// The lexer of Python, which also reads Starlark, is python.xml of github.com/alecthomas/chroma (MIT, see LICENSE). Only chroma's core is
// linked, because its package of lexers would load 250 of them at every start of lashd. All functions are safe for concurrent use.
package highlight

import (
	"embed"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// Kind says what a piece of code is.
type Kind int

const (
	Plain   Kind = iota // names, operators, white space, and code of other languages
	Keyword             // also constants such as None
	Builtin             // a function of the language, or a decorator
	Text                // a text in quotation marks
	Number
	Comment
)

// Token is a piece of a line of code.
type Token struct {
	Kind Kind
	Text string
}

// maxSource is the size in bytes of the longest source that is read. Longer code stays plain, because a chat draws it again
// with each key.
const maxSource = 32 << 10

//go:embed python.xml
var files embed.FS

// python returns the lexer. Loading it takes 15 ms, so the first code does that and not the start of lashd.
var python = sync.OnceValues(func() (*chroma.RegexLexer, error) { return chroma.NewXMLLexer(files, "python.xml") })

// Lines returns the tokens of each line of the source, without line breaks. The texts of the tokens together are the source. A
// language other than Starlark and Python has one plain token a line, and an empty line has none.
func Lines(language, source string) [][]Token {
	if language != "starlark" && language != "python" || len(source) > maxSource {
		return plain(source)
	}
	lexer, err := python()
	if err != nil {
		return plain(source)
	}
	read, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, source)
	if err != nil {
		return plain(source)
	}
	lines := [][]Token{nil}
	for _, token := range read.Tokens() {
		for i, text := range strings.Split(token.Value, "\n") {
			if i > 0 {
				lines = append(lines, nil)
			}
			if text != "" {
				at := len(lines) - 1
				lines[at] = append(lines[at], Token{kindOf(token.Type), text})
			}
		}
	}
	return lines
}

// plain returns lines of one token each.
func plain(source string) (lines [][]Token) {
	for text := range strings.SplitSeq(source, "\n") {
		var line []Token
		if text != "" {
			line = []Token{{Plain, text}}
		}
		lines = append(lines, line)
	}
	return lines
}

// kindOf returns the kind of a token of chroma.
func kindOf(t chroma.TokenType) Kind {
	switch {
	case t.InCategory(chroma.Keyword), t == chroma.OperatorWord:
		return Keyword
	case t == chroma.NameBuiltin, t == chroma.NameDecorator:
		return Builtin
	case t.InSubCategory(chroma.LiteralString):
		return Text
	case t.InSubCategory(chroma.LiteralNumber):
		return Number
	case t.InCategory(chroma.Comment):
		return Comment
	}
	return Plain
}
