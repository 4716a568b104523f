package workspace

import (
	"regexp"
	"strings"
	"sync"
)

// section is the part of a patch for one file.
type section struct {
	// verb is add, update or delete.
	verb string
	// path is the file as the patch names it. moved is relative to the workspace in the
	// same way.
	path string
	// moved is the new name of an updated file, or empty.
	moved string
	// add is the content of an added file.
	add string
	// hunks are the changes of an updated file, in the order of their places.
	hunks []block
	// line is the line number of the header, for messages.
	line int
	// text is the section as it was written.
	text string
}

// block is one hunk of an update: lines to keep, remove and add. It is located by its
// context, not by line numbers.
type block struct {
	// anchors are lines that occur before the block, in this order.
	anchors []string
	parts   []part
	// end means that the block is at the end of the file.
	end  bool
	line int
}

// part is one line of a block. The mark is ' ', '-' or '+'.
type part struct {
	mark byte
	text string
}

// old returns the lines that must be in the file.
func (b block) old() []string {
	var list []string
	for _, p := range b.parts {
		if p.mark != '+' {
			list = append(list, p.text)
		}
	}
	return list
}

const (
	// Lines with a meaning in a patch.
	begin     = "*** Begin Patch"
	end       = "*** End Patch"
	endOfFile = "*** End of File"
	moveTo    = "*** Move to: "
)

// headers are the first lines of the sections of a patch.
var headers = []struct{ prefix, verb string }{
	{"*** Add File: ", "add"},
	{"*** Update File: ", "update"},
	{"*** Delete File: ", "delete"},
}

// lineNumbers matches the line numbers in the hunk header of diff, which some models write.
// They are ignored.
var lineNumbers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)? @@ ?`) })

// parsePatch parses a patch. It does not look at files.
// It accepts Windows line ends and blank lines around the patch. Sections are in the order of
// the text; that a file occurs twice is found by the plan.
func parsePatch(text string) ([]section, error) {
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n \t")
	p := &patchParser{lines: strings.Split(text, "\n")}
	for p.more() && strings.TrimSpace(p.peek()) == "" {
		p.at++
	}
	if !p.more() || strings.TrimSpace(p.peek()) != begin {
		return nil, refuse("invalid_patch", "a patch starts with the line %q", begin)
	}
	p.at++
	for p.more() && strings.TrimSpace(p.peek()) != end {
		from := p.at
		s, err := p.section()
		if err != nil {
			return nil, err
		}
		s.text = strings.Join(p.lines[from:p.at], "\n")
		p.sections = append(p.sections, s)
	}
	if !p.more() {
		return nil, refuse("invalid_patch", "the patch does not end with the line %q", end)
	}
	if p.at != len(p.lines)-1 {
		return nil, refuse("invalid_patch", "line %d: unexpected text after %q", p.at+2, end)
	}
	if len(p.sections) == 0 {
		return nil, refuse("invalid_patch", "the patch contains no file")
	}
	return p.sections, nil
}

// patchParser is the state of parsePatch: the lines of the patch, the index of the current
// line, and the sections so far. Its methods return a fault with the line number for an
// invalid patch.
type patchParser struct {
	lines    []string
	at       int
	sections []section
}

// more reports whether there is a current line. peek returns it and must not be called otherwise.
func (p *patchParser) more() bool   { return p.at < len(p.lines) }
func (p *patchParser) peek() string { return p.lines[p.at] }

// header reports whether the current line starts a section or ends the patch.
func (p *patchParser) header() bool {
	return strings.HasPrefix(p.peek(), "*** ") && p.peek() != endOfFile
}

// section parses the part for one file.
// The current line must be a header of a section, and the line after the part becomes current.
func (p *patchParser) section() (section, error) {
	for _, h := range headers {
		name, ok := strings.CutPrefix(p.peek(), h.prefix)
		if !ok {
			continue
		}
		s := section{verb: h.verb, path: strings.TrimSpace(name), line: p.at + 1}
		if s.path == "" {
			return s, refuse("invalid_patch", "line %d: the path is missing", s.line)
		}
		p.at++
		switch h.verb {
		case "add":
			return s, p.added(&s)
		case "update":
			return s, p.updated(&s)
		}
		return s, nil
	}
	return section{}, refuse("invalid_patch", "line %d: expected a line such as \"*** Update File: path\", got %q", p.at+1, p.peek())
}

// added parses the lines of an added file.
func (p *patchParser) added(s *section) error {
	var content strings.Builder
	for ; p.more() && !p.header(); p.at++ {
		line, ok := strings.CutPrefix(p.peek(), "+")
		if !ok {
			return refuse("invalid_patch", "line %d: each line of an added file starts with +, got %q", p.at+1, p.peek())
		}
		content.WriteString(line + "\n")
	}
	s.add = content.String()
	return nil
}

// updated parses the new name and the blocks of an updated file.
// An update without blocks is valid only if it moves the file.
func (p *patchParser) updated(s *section) error {
	if p.more() {
		if name, ok := strings.CutPrefix(p.peek(), moveTo); ok {
			s.moved = strings.TrimSpace(name)
			p.at++
		}
	}
	for p.more() && !p.header() {
		b, err := p.block()
		if err != nil {
			return err
		}
		s.hunks = append(s.hunks, b)
	}
	if len(s.hunks) == 0 && s.moved == "" {
		return refuse("invalid_patch", "line %d: the update of %s contains no change", s.line, s.path)
	}
	return nil
}

// block parses one block with its anchors.
// Several lines that start with @@ are anchors of the same block. A block must change something.
func (p *patchParser) block() (block, error) {
	b := block{line: p.at + 1}
	for ; p.more() && strings.HasPrefix(p.peek(), "@@"); p.at++ {
		anchor := strings.TrimPrefix(strings.TrimPrefix(p.peek(), "@@"), " ")
		anchor = lineNumbers().ReplaceAllString(anchor, "")
		if strings.TrimSpace(anchor) != "" {
			b.anchors = append(b.anchors, anchor)
		}
	}
	changes := false
	for ; p.more() && !p.header() && !strings.HasPrefix(p.peek(), "@@"); p.at++ {
		line := p.peek()
		if line == endOfFile {
			b.end = true
			p.at++
			break
		}
		if line == "" {
			line = " " // models often omit the mark of an empty context line
		}
		if !strings.ContainsRune(" +-", rune(line[0])) {
			return b, refuse("invalid_patch", "line %d: a line of an update starts with a space, + or -, got %q", p.at+1, line)
		}
		changes = changes || line[0] != ' '
		b.parts = append(b.parts, part{line[0], line[1:]})
	}
	if !changes {
		return b, refuse("invalid_patch", "line %d: this part of the update changes nothing", b.line)
	}
	return b, nil
}
