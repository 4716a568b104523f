package markdown

import (
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"lashd/internal/termtext"
)

// markdown is the parser. Definitions of links and footnotes stay text: a reference
// to one that follows later could not be shown in time.
var markdown = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999))...),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)))
})

// block renders a block of the source.
func (s Style) block(b block) []string {
	source := []byte(strings.Join(b.lines, "\n") + "\n")
	p := painter{s, source}
	document := markdown().Parse(text.NewReader(source))
	if list, ok := document.FirstChild().(*ast.List); ok && list.IsOrdered() && b.number >= 0 {
		list.Start = b.number
	}
	return s.lines(indent(p.blocks(document), strings.Repeat(" ", b.indent)))
}

// endsInParagraph reports whether the last thing in a text is a paragraph or a
// table, which the next line may continue.
func endsInParagraph(source string) bool {
	var n ast.Node = markdown().Parse(text.NewReader([]byte(source + "\n")))
	for n.LastChild() != nil && n.Type() != ast.TypeInline {
		switch n.Kind() {
		case ast.KindParagraph, ast.KindTextBlock, extensionast.KindTable:
			return true
		}
		n = n.LastChild()
	}
	return false
}

// blocks renders the children of a node, with empty rows where the source has them.
func (p painter) blocks(parent ast.Node) (out []row) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		rows := p.node(n)
		if len(out) > 0 && len(rows) > 0 && (n.HasBlankPreviousLines() || n.Kind() == ast.KindHeading) {
			out = append(out, nil)
		}
		out = append(out, rows...)
	}
	return out
}

// node renders a block.
func (p painter) node(n ast.Node) []row {
	switch n := n.(type) {
	case *ast.Heading:
		return p.heading(n)
	case *ast.ThematicBreak:
		return []row{{{strings.Repeat("─", 24), look{role: muted}}}}
	case *ast.FencedCodeBlock:
		return p.style.codeBlock(string(n.Language(p.source)), p.raw(n))
	case *ast.CodeBlock:
		return p.style.codeBlock("", p.raw(n))
	case *ast.HTMLBlock:
		lines := p.raw(n)
		if n.HasClosure() {
			lines = append(lines, strings.TrimSuffix(string(n.ClosureLine.Value(p.source)), "\n"))
		}
		return plainRows(lines)
	case *ast.Blockquote:
		return prefixed(p.blocks(n), span{"│ ", look{role: muted}})
	case *ast.List:
		return p.list(n)
	case *extensionast.Table:
		return p.table(n)
	case *ast.Paragraph, *ast.TextBlock:
		return p.inlines(n, look{})
	}
	return p.blocks(n)
}

// heading renders a heading in bold. Without attributes its marks show the level.
func (p painter) heading(n *ast.Heading) []row {
	rows := p.inlines(n, look{role: heading, bold: true, underline: n.Level == 1})
	if p.style.Theme == Plain {
		rows[0] = append(row{{strings.Repeat("#", n.Level) + " ", look{}}}, rows[0]...)
	}
	return rows
}

// list renders a list. The text of an item is indented by the width of its mark.
func (p painter) list(list *ast.List) (out []row) {
	at := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "- "
		if list.IsOrdered() {
			mark = strconv.Itoa(at) + string(list.Marker) + " "
			at++
		}
		rows := p.blocks(item)
		if len(rows) == 0 {
			rows = []row{nil}
		}
		rows = indent(rows, strings.Repeat(" ", len(mark)))
		rows[0] = append(row{{mark, look{role: muted}}}, drop(rows[0])...)
		if len(out) > 0 && item.HasBlankPreviousLines() {
			out = append(out, nil)
		}
		out = append(out, rows...)
	}
	return out
}

// drop returns a row without its indentation, if it has one.
func drop(r row) row {
	if len(r) == 0 {
		return nil
	}
	return r[1:]
}

// raw returns the lines of a block as they were written.
func (p painter) raw(n ast.Node) (out []string) {
	lines := n.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		out = append(out, termtext.Printable(strings.TrimSuffix(string(at.Value(p.source)), "\n")))
	}
	return out
}

// plainRows returns lines without a style.
func plainRows(lines []string) (out []row) {
	for _, l := range lines {
		out = append(out, expanded(row{{l, look{}}}))
	}
	return out
}

// indent puts spaces before rows.
func indent(rows []row, by string) []row {
	if by == "" {
		return rows
	}
	return prefixed(rows, span{by, look{}})
}

// prefixed puts a piece of text before each row.
func prefixed(rows []row, before span) []row {
	for i, r := range rows {
		rows[i] = append(row{before}, r...)
	}
	return rows
}
