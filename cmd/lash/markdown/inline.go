package markdown

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"lashd/internal/termtext"
)

// painter renders the nodes of one parsed text.
type painter struct {
	style  Style
	source []byte
}

// inlines renders the text of a block. Only a hard line break begins a new row.
func (p painter) inlines(n ast.Node, l look) []row {
	w := &writer{painter: p, rows: []row{nil}}
	w.children(n, l)
	return w.rows
}

// writer collects the rows of the text of a block.
type writer struct {
	painter
	rows []row
}

// add appends text to the newest row.
func (w *writer) add(s string, l look) {
	if s != "" {
		last := len(w.rows) - 1
		w.rows[last] = append(w.rows[last], span{s, l})
	}
}

// children renders the children of a node.
func (w *writer) children(n ast.Node, l look) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.node(c, l)
	}
}

// node renders a node of the text of a block.
func (w *writer) node(n ast.Node, l look) {
	switch n := n.(type) {
	case *ast.Text:
		w.text(n, l)
	case *ast.String:
		w.words(termtext.Printable(string(n.Value)), l)
	case *ast.CodeSpan:
		l.role = inlineCode
		w.words(strings.ReplaceAll(w.plain(n), "\n", " "), l)
	case *ast.Emphasis:
		l.bold, l.italic = l.bold || n.Level > 1, l.italic || n.Level == 1
		w.children(n, l)
	case *extension.Strikethrough:
		l.struck = true
		w.children(n, l)
	case *extension.TaskCheckBox:
		if n.IsChecked {
			w.add("[x] ", look{role: done})
			return
		}
		w.add("[ ] ", look{role: muted})
	case *ast.Link:
		w.link(n, string(n.Destination), l)
	case *ast.Image:
		w.link(n, string(n.Destination), l)
	case *ast.AutoLink:
		label := termtext.Printable(string(n.Label(w.source)))
		w.add(label, w.linked(l, string(n.URL(w.source)), label))
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			at := n.Segments.At(i)
			w.add(strings.ReplaceAll(termtext.Printable(string(at.Value(w.source))), "\n", " "), l)
		}
	default:
		w.children(n, l)
	}
}

// text renders a piece of text and the line break after it.
func (w *writer) text(n *ast.Text, l look) {
	value := string(n.Segment.Value(w.source))
	if !n.IsRaw() {
		value = unescaped(value)
	}
	w.words(strings.ReplaceAll(termtext.Printable(value), "\n", " "), l)
	switch {
	case n.HardLineBreak():
		w.rows = append(w.rows, nil)
	case n.SoftLineBreak() && !w.ideographs(n):
		w.add(" ", l)
	}
}

// ideographs reports whether a line break is between two characters of a script
// that has no spaces.
func (w *writer) ideographs(n *ast.Text) bool {
	next, ok := n.NextSibling().(*ast.Text)
	if !ok {
		return false
	}
	before, _ := utf8.DecodeLastRune(n.Segment.Value(w.source))
	after, _ := utf8.DecodeRune(next.Segment.Value(w.source))
	return spaceless(before) && spaceless(after)
}

// spaceless reports whether r is of a script that has no spaces, or its punctuation.
func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff60
}

// plain returns the text of a node as it was written.
func (w *writer) plain(n ast.Node) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			out.Write(t.Segment.Value(w.source))
		}
	}
	return termtext.Printable(out.String())
}

// fileName matches the name of a file, with a line or without.
var fileName = regexp.MustCompile(`(?:\./|\.\./|/)?(?:[\pL\pN_.@+-]+/)*[\pL\pN_@+-]+(?:\.[\pL\pN_]+)+(?::(\d+))?(?::\d+)?`)

// words adds text in which files are links.
func (w *writer) words(s string, l look) {
	if w.style.File == nil || !w.style.Links || l.url != "" || !strings.ContainsRune(s, '.') {
		w.add(s, l)
		return
	}
	end := 0
	for _, at := range fileName.FindAllStringSubmatchIndex(s, -1) {
		path, line := s[at[0]:at[1]], 0
		if at[2] >= 0 {
			line, _ = strconv.Atoi(s[at[2]:at[3]]) // digits; a number that is too large is no line
			path = s[at[0] : at[2]-1]
		}
		if address := w.style.File(path, line); address != "" {
			w.add(s[end:at[0]], l)
			w.add(s[at[0]:at[1]], w.linked(l, address, s[at[0]:at[1]]))
			end = at[1]
		}
	}
	w.add(s[end:], l)
}

// link renders a link or an image. Its address follows in parentheses if the
// terminal cannot open it, or if the text looks like another address.
func (w *writer) link(n ast.Node, destination string, l look) {
	destination = unescaped(destination)
	inside := l
	inside.role, inside.url = link, "-" // no links inside of it
	inner := &writer{painter: w.painter, rows: []row{nil}}
	inner.children(n, inside)
	label := slices.Concat(inner.rows...).text()
	to := w.linked(l, w.address(destination), label)
	for i, r := range inner.rows {
		if i > 0 {
			w.rows = append(w.rows, nil)
		}
		for _, p := range r {
			p.look.url, p.look.underline = to.url, true
			w.add(p.text, p.look)
		}
	}
	w.shownAddress(termtext.Printable(destination), label, to.url != "", l)
}

// shownAddress adds the address of a link after its label, unless the terminal opens
// the link or the label is the address.
func (w *writer) shownAddress(address, label string, opens bool, l look) {
	switch {
	case opens, address == "", address == label, address == "mailto:"+label:
	case label == "":
		w.add(address, look{role: muted})
	default:
		w.add(" ", l)
		w.add("("+address+")", look{role: muted})
	}
}

// address returns the address to open for the destination of a link, which may be a
// file.
func (w *writer) address(destination string) string {
	if strings.Contains(destination, ":") || w.style.File == nil || !w.style.Links {
		return destination
	}
	path, fragment, _ := strings.Cut(destination, "#")
	line, _ := strconv.Atoi(strings.TrimPrefix(fragment, "L")) // another fragment is no line
	return w.style.File(path, line)
}

// linked returns the look of a link. Its url is "" if the terminal cannot open the
// address, or if the label is another address, which would hide where it leads.
func (w *writer) linked(l look, address, label string) look {
	l.role, l.underline = link, true
	if u := openable(address); w.style.Links && (!looksLikeAddress(label) || sameAddress(label, address)) {
		l.url = u
	}
	return l
}

// openable returns an address in printable ASCII, or "" if a terminal should not
// open it.
func openable(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto", "file":
		if out := u.String(); strings.IndexFunc(out, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
			return out
		}
	}
	return ""
}

// looksLikeAddress reports whether a person would take a label for an address.
func looksLikeAddress(label string) bool {
	return strings.Contains(label, "://") || strings.HasPrefix(label, "www.") || strings.Contains(label, "@")
}

// sameAddress reports whether a label is an address, perhaps without its scheme.
func sameAddress(label, address string) bool {
	bare := func(s string) string {
		for _, scheme := range []string{"https://", "http://", "mailto:"} {
			s = strings.TrimPrefix(s, scheme)
		}
		return strings.TrimSuffix(s, "/")
	}
	return bare(label) == bare(address)
}

// unescaped replaces escaped punctuation and entities.
func unescaped(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var out strings.Builder
	from := 0
	flush := func(to int) {
		out.Write(util.ResolveEntityNames(util.ResolveNumericReferences([]byte(s[from:to]))))
	}
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '\\' && util.IsPunct(s[i+1]) {
			flush(i)
			out.WriteByte(s[i+1])
			from = i + 2
			i++
		}
	}
	flush(len(s))
	return out.String()
}
