package markdown

import (
	"regexp"
	"strconv"
	"strings"
)

// blockKind says which lines continue a block of the source.
type blockKind int

const (
	noBlock        blockKind = iota
	paragraphBlock           // or a table, or a heading that is underlined
	listBlock                // one item of a list, with all that is in it
	quoteBlock
	indentedBlock // code
	htmlBlock     // ends at an empty line
	htmlPairBlock // ends at its closing mark
)

// block is a part of the source that does not depend on what follows, such as a
// paragraph or an item of a list.
type block struct {
	lines  []string
	gap    bool // an empty line is before it
	number int  // of an item of an ordered list; -1: none
	indent int  // of an item of a list, in columns
}

// splitter cuts a source into blocks, line by line. Goldmark parses whole texts, so
// the splitter finds the places at which a text can be cut without a difference.
type splitter struct {
	block
	kind    blockKind
	content int    // the column at which the text of a list item begins
	bare    bool   // the first line of a list item has no text
	blank   bool   // the last line was empty
	lazy    bool   // the last line continues a paragraph without the mark or the indentation of the block
	end     string // of an htmlPairBlock
	mark    byte   // of the list that the last block belongs to: - + * . ) or 0
	next    int    // number of the newest item of that list
}

var (
	atxHeading = regexp.MustCompile(`^ {0,3}#{1,6}([ \t]|$)`)
	underline  = regexp.MustCompile(`^ {0,3}(=+|-+)[ \t]*$`)
	ruleLine   = regexp.MustCompile(`^ {0,3}((\*[ \t]*){3,}|(-[ \t]*){3,}|(_[ \t]*){3,})$`)
	listMarker = regexp.MustCompile(`^( {0,3})([-*+]|(\d{1,9})[.)])([ \t]+|$)`)
	quoteMark  = regexp.MustCompile(`^ {0,3}>`)

	tableDelimiter = regexp.MustCompile(`^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)

	htmlStart = regexp.MustCompile(`(?i)^ {0,3}</?(address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|` +
		`fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|` +
		`option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)([ \t>]|/>|$)`)
	htmlTag  = regexp.MustCompile(`^ {0,3}</?[A-Za-z][A-Za-z0-9-]*([ \t][^<>]*)?/?>[ \t]*$`)
	htmlPair = regexp.MustCompile(`(?i)^ {0,3}<(?:(script|pre|style|textarea)(?:[ \t>]|$)|(!--|\?|!\[CDATA\[|![a-z]))`)
	pairTag  = regexp.MustCompile(`(?i)^ {0,3}</?(script|pre|style|textarea)\b`)
)

// htmlEnds are the closing marks of the openings that htmlPair finds.
var htmlEnds = map[string]string{
	"script": "</script>", "pre": "</pre>", "style": "</style>", "textarea": "</textarea>", "!--": "-->", "?": "?>", "![cdata[": "]]>",
}

// line adds a line. It returns the block that the line finishes, or nil, and
// whether the line begins a block, for which the caller calls start.
func (s *splitter) line(text string) (finished *block, again bool) {
	empty := strings.TrimSpace(text) == ""
	switch s.kind {
	case noBlock:
		s.gap = s.gap || empty
		return nil, !empty
	case listBlock, indentedBlock:
		return s.indented(text, empty)
	case htmlPairBlock:
		s.lines = append(s.lines, text)
		if strings.Contains(strings.ToLower(text), s.end) {
			return s.take(), false
		}
		return nil, false
	}
	switch {
	case empty:
		finished = s.take()
		s.gap = true
		return finished, false
	case s.kind == htmlBlock:
	case s.kind == paragraphBlock && underline.MatchString(text) && !s.table():
		s.lines = append(s.lines, text)
		return s.take(), false
	case s.kind == quoteBlock && quoteMark.MatchString(text):
		s.lazy = false
	case interrupts(text), s.kind == quoteBlock && (listMarker.MatchString(text) || !s.continues()):
		return s.take(), true
	}
	s.lines = append(s.lines, text)
	return nil, false
}

// indented adds a line to an item of a list or to indented code. Lines that are
// indented belong to it even after an empty line.
func (s *splitter) indented(text string, empty bool) (finished *block, again bool) {
	inside := columns(text) >= s.content
	switch {
	case empty && s.kind == listBlock && len(s.lines) == 1 && s.bare:
		finished = s.take() // an item without text ends here
		s.gap = true
		return finished, false
	case empty:
		s.blank = true
		s.lines = append(s.lines, "")
		return nil, false
	case inside:
		s.lazy = false
	case s.kind == indentedBlock, s.blank, interrupts(text), listMarker.MatchString(text), !s.continues():
		return s.take(), true
	}
	s.blank = false
	s.lines = append(s.lines, text)
	return nil, false
}

// table reports whether the open paragraph looks like a table.
func (s *splitter) table() bool { return len(s.lines) > 1 && tableDelimiter.MatchString(s.lines[1]) }

// mostLazy is the size in bytes of the largest item or quote that is parsed to see
// whether a line continues it.
const mostLazy = 16 << 10

// continues reports whether a line that has not the indentation or the mark of the
// open block continues it. It does if a paragraph is open in the block.
func (s *splitter) continues() bool {
	if s.lazy {
		return true
	}
	if strings.Trim(s.lines[len(s.lines)-1], " \t>") == "" {
		return false // an empty line of a quote
	}
	size := 0
	for _, l := range s.lines {
		size += len(l) + 1
	}
	s.lazy = size > mostLazy || endsInParagraph(strings.Join(s.lines, "\n"))
	return s.lazy
}

// start begins a block with a line that is not empty and does not begin a code
// block. It returns the block if that is the only line of it.
func (s *splitter) start(text string) *block {
	last := s.mark
	s.lines, s.number, s.indent, s.mark, s.lazy = []string{text}, -1, 0, 0, false
	switch {
	case columns(text) >= 4:
		s.kind, s.content = indentedBlock, 4
	case ruleLine.MatchString(text):
		return s.take()
	case atxHeading.MatchString(text):
		s.gap = true
		return s.take()
	case quoteMark.MatchString(text):
		s.kind = quoteBlock
	case listMarker.MatchString(text):
		s.item(text, last)
	case htmlPair.MatchString(text):
		return s.pair(text)
	case htmlStart.MatchString(text), htmlTag.MatchString(text) && !pairTag.MatchString(text):
		s.kind = htmlBlock
	default:
		s.kind = paragraphBlock
	}
	return nil
}

// item begins an item of a list. The items of an ordered list count from the number
// of the first one, as last says, the mark of the list before.
func (s *splitter) item(text string, last byte) {
	m := listMarker.FindStringSubmatch(text)
	s.kind, s.blank, s.indent = listBlock, false, len(m[1])
	s.mark = m[2][len(m[2])-1]
	s.content = column(m[0])
	s.bare = len(m[0]) == len(text)
	if mark := len(m[1]) + len(m[2]); s.bare || s.content > mark+4 {
		s.content = mark + 1
	}
	if m[3] == "" {
		return
	}
	if last == s.mark {
		s.next++
	} else {
		s.next, _ = strconv.Atoi(m[3]) // at most nine digits
	}
	s.number = s.next
}

// pair begins a block of HTML that ends at its closing mark, perhaps in the same
// line.
func (s *splitter) pair(text string) *block {
	mark := htmlPair.FindStringSubmatch(text)
	s.kind, s.end = htmlPairBlock, htmlEnds[strings.ToLower(mark[1]+mark[2])]
	if s.end == "" {
		s.end = ">"
	}
	if strings.Contains(strings.ToLower(text[len(mark[0]):]), s.end) {
		return s.take()
	}
	return nil
}

// take ends the open block and returns it, or nil if none is open. Empty lines at
// its end become the gap of the next one.
func (s *splitter) take() *block {
	if len(s.lines) == 0 {
		return nil
	}
	b := s.block
	n := len(b.lines)
	for n > 0 && strings.TrimSpace(b.lines[n-1]) == "" {
		n--
	}
	s.lines, s.gap, s.kind = nil, n < len(b.lines), noBlock
	b.lines = b.lines[:n]
	return &b
}

// interrupts reports whether a line ends a paragraph by beginning another block.
func interrupts(text string) bool {
	if m := listMarker.FindStringSubmatch(text); m != nil && len(m[0]) < len(text) && (m[3] == "" || m[3] == "1") {
		return true
	}
	return ruleLine.MatchString(text) || atxHeading.MatchString(text) || quoteMark.MatchString(text) || newFence(text) != nil ||
		htmlPair.MatchString(text) || htmlStart.MatchString(text)
}

// columns returns the width of the white space before a text.
func columns(text string) int { return column(text[:len(text)-len(strings.TrimLeft(text, " \t"))]) }

// column returns the column after a text of ASCII characters, with tab stops at
// multiples of four.
func column(text string) (n int) {
	for i := range len(text) {
		n++
		if text[i] == '\t' {
			n += 3 - (n-1)%4
		}
	}
	return n
}
