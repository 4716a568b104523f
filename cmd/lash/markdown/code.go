package markdown

import (
	"embed"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"

	"lashd/internal/termtext"
)

// lexers has the languages of Chroma that models write most. Chroma's own package of
// lexers reads all of its 280 when a program starts, which takes 6 ms.
//
//go:generate go run ../../../internal/lexergen
//go:embed lexers/*.xml
var lexers embed.FS

// registry reads the languages when the first code is shown. The rules of a
// language are read when it is first used.
var registry = sync.OnceValue(func() *chroma.LexerRegistry {
	all := chroma.NewLexerRegistry()
	paths, err := fs.Glob(lexers, "lexers/*.xml")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	for _, path := range paths {
		all.Register(chroma.MustNewXMLLexer(lexers, path))
	}
	return all
})

// mostCode is the number of bytes of the longest code that is highlighted, and
// longLine that of its longest line.
const (
	mostCode = 256 << 10
	longLine = 2000
)

// lexer returns the lexer of a language or of a file name, or nil. Without colors
// there is none.
func (s Style) lexer(language string) chroma.Lexer {
	if language == "" || s.Theme <= Mono {
		return nil
	}
	return registry().Get(language)
}

// Code renders the lines of code in a language, which may also be a file name.
func Code(language, code string, style Style) []string {
	return style.lines(style.highlight(style.lexer(language), strings.Split(termtext.Printable(code), "\n")))
}

// highlight renders lines of code. Each row has the text of its line, with spaces in
// place of tabs.
func (s Style) highlight(lexer chroma.Lexer, lines []string) []row {
	size := 0
	for _, l := range lines {
		size += len(l)
		if len(l) > longLine {
			size += mostCode
		}
	}
	if lexer == nil || size > mostCode {
		return plainRows(lines)
	}
	tokens, err := chroma.Tokenise(lexer, nil, strings.Join(lines, "\n"))
	if err != nil {
		return plainRows(lines)
	}
	rows := make([]row, 1, len(lines)+1)
	for _, t := range tokens {
		for i, part := range strings.Split(t.Value, "\n") {
			if i > 0 {
				rows = append(rows, nil)
			}
			if at := len(rows) - 1; part != "" {
				rows[at] = append(rows[at], span{part, look{role: roleOf(t.Type)}})
			}
		}
	}
	return checked(rows, lines)
}

// checked returns the rows of lines. A row whose text differs from its line, which a
// lexer must not cause, is shown without colors.
func checked(rows []row, lines []string) []row {
	out := make([]row, 0, len(lines))
	for i, l := range lines {
		r := row{{l, look{}}}
		if i < len(rows) && rows[i].text() == l {
			r = rows[i]
		}
		out = append(out, expanded(r))
	}
	return out
}

// text returns the text of a row.
func (r row) text() string {
	var out strings.Builder
	for _, p := range r {
		out.WriteString(p.text)
	}
	return out.String()
}

// tabWidth is the distance of tab stops in code.
const tabWidth = 4

// expanded returns a row with spaces in place of tabs.
func expanded(r row) row {
	if !strings.Contains(r.text(), "\t") {
		return r
	}
	out, at := make(row, 0, len(r)), 0
	for _, p := range r {
		var b strings.Builder
		for piece := range strings.SplitAfterSeq(p.text, "\t") {
			bare := strings.TrimSuffix(piece, "\t")
			b.WriteString(bare)
			at += row{{bare, look{}}}.width()
			if bare != piece {
				b.WriteString(strings.Repeat(" ", tabWidth-at%tabWidth))
				at += tabWidth - at%tabWidth
			}
		}
		out = append(out, span{b.String(), p.look})
	}
	return out
}

// roleOf returns the role of a token.
func roleOf(t chroma.TokenType) role {
	switch {
	case t == chroma.KeywordType, t == chroma.NameClass, t == chroma.NameNamespace:
		return typeName
	case t == chroma.KeywordConstant, t.InSubCategory(chroma.LiteralNumber):
		return number
	case t.InCategory(chroma.Keyword), t == chroma.NameTag, t == chroma.OperatorWord:
		return keyword
	case t.InSubCategory(chroma.LiteralString):
		return stringText
	case t.InCategory(chroma.Comment):
		return comment
	case t.InSubCategory(chroma.NameFunction), t.InSubCategory(chroma.NameBuiltin), t == chroma.NameDecorator, t == chroma.NameAttribute:
		return function
	}
	return normal
}

// codeBlock renders code between two short lines, the first of which names the
// language. The code begins at the first column, so it can be copied.
func (s Style) codeBlock(language string, lines []string) []row {
	out := append([]row{codeHead(language)}, s.codeRows(language, lines)...)
	return append(out, codeFoot())
}

// codeRows renders lines of code, or of a diff.
func (s Style) codeRows(language string, lines []string) []row {
	if language == "diff" || language == "patch" {
		return diffRows(lines)
	}
	return s.highlight(s.lexer(language), lines)
}

// codeHead renders the line above code.
func codeHead(language string) row { return row{{"── " + language, look{role: muted}}} }

// codeFoot renders the line below code.
func codeFoot() row { return row{{"──", look{role: muted}}} }

// fence is a top-level code block of the source that has not ended.
type fence struct {
	mark     string // at least these characters end it
	indent   int    // columns before the mark, which its lines do not need
	language string
	lines    []string
	done     int // lines that were finished
	due      int // lines after which the next ones are finished
}

// fenceStart matches the line that begins a code block.
var fenceStart = regexp.MustCompile("^( {0,3})(```+|~~~+)[ \t]*(.*)$")

// newFence returns the code block that a line begins, or nil.
func newFence(line string) *fence {
	m := fenceStart.FindStringSubmatch(line)
	if m == nil || m[2][0] == '`' && strings.Contains(m[3], "`") {
		return nil
	}
	language, _, _ := strings.Cut(strings.TrimSpace(m[3]), " ")
	return &fence{mark: m[2], indent: len(m[1]), language: unescaped(language), due: batch}
}

// ends reports whether a line ends the code block.
func (f *fence) ends(line string) bool {
	if columns(line) > 3 {
		return false
	}
	bare := strings.TrimRight(strings.TrimLeft(line, " "), " \t")
	return len(bare) >= len(f.mark) && strings.Trim(bare, f.mark[:1]) == ""
}

// batch is the number of lines of code that are highlighted together at first.
const batch = 32

// openFence begins a code block.
func (s *Stream) openFence(f *fence) []string {
	s.fence, s.split.mark = f, 0
	gap := s.split.gap
	s.split.gap = false
	return s.separate(gap, []string{s.style.line(codeHead(f.language))})
}

// codeLine adds a line to the code block. A lexer needs all lines before, and
// starts from the first one again. So lines are finished in batches that grow with
// the code, and the work stays proportional to the code.
func (s *Stream) codeLine(line string) []string {
	f := s.fence
	if f.ends(line) {
		return s.closeFence()
	}
	f.lines = append(f.lines, line[min(f.indent, columns(line), len(line)-len(strings.TrimLeft(line, " "))):])
	if s.light || len(f.lines) < f.due && s.style.lexer(f.language) != nil {
		return nil
	}
	f.due = max(len(f.lines)+batch, len(f.lines)*3/2)
	return s.codeDone()
}

// codeDone finishes the lines of the code block so far.
func (s *Stream) codeDone() []string {
	f := s.fence
	from := f.done
	f.done = len(f.lines)
	if s.light || s.style.lexer(f.language) == nil {
		return s.style.lines(s.style.plainCode(f.language, f.lines[from:]))
	}
	return s.style.lines(s.style.highlight(s.style.lexer(f.language), f.lines)[from:])
}

// closeFence ends the code block.
func (s *Stream) closeFence() []string {
	out := s.codeDone()
	if s.fence = nil; s.light {
		return out // the line below code is not due yet
	}
	return append(out, s.style.line(codeFoot()))
}

// plainCode renders lines of code without a lexer.
func (s Style) plainCode(language string, lines []string) []row {
	if language == "diff" || language == "patch" {
		return diffRows(lines)
	}
	return plainRows(lines)
}
