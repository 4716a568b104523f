package markdown

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"
)

// Theme is a set of colors.
type Theme int

const (
	Plain   Theme = iota // no escape sequences
	Mono                 // bold, italic and underlined text without colors, for NO_COLOR
	Palette              // the 16 colors of the terminal, which suit any background
	Dark                 // for a dark background, from the 256 colors
	Light                // for a light background, from the 256 colors
)

// ThemeFor returns the theme for the colors and the background of a terminal. Dark is
// nil if the background is not known.
func ThemeFor(profile colorprofile.Profile, dark *bool) Theme {
	switch {
	case profile <= colorprofile.NoTTY:
		return Plain
	case profile == colorprofile.ASCII:
		return Mono
	case profile == colorprofile.ANSI || dark == nil:
		return Palette
	case *dark:
		return Dark
	}
	return Light
}

// role is what a piece of text is. It has one color in each theme.
type role uint8

const (
	normal role = iota
	muted
	heading
	inlineCode
	link
	done
	keyword
	function
	typeName
	stringText
	number
	comment
	added
	removed
	hunk
	roles // the number of roles
)

// sgr has the parameters of the palette, by role.
var sgr = [roles]string{
	muted: "2", heading: "36", inlineCode: "36", link: "34", done: "32", keyword: "35", function: "36", typeName: "36", stringText: "32",
	number: "33", comment: "2", added: "32", removed: "31", hunk: "36",
}

// The colors of the other themes. They are colors above 15, which no terminal
// redefines. A test compares their contrast with common backgrounds.
var (
	dark = [roles]int{
		muted: 248, heading: 117, inlineCode: 152, link: 111, done: 114, keyword: 182, function: 117, typeName: 116, stringText: 150,
		number: 216, comment: 248, added: 114, removed: 217, hunk: 116,
	}
	light = [roles]int{
		muted: 240, heading: 24, inlineCode: 23, link: 25, done: 22, keyword: 90, function: 24, typeName: 23, stringText: 22,
		number: 94, comment: 240, added: 22, removed: 88, hunk: 24,
	}
)

// look is how a piece of text is shown.
type look struct {
	role                            role
	bold, italic, underline, struck bool
	url                             string // the address that it links to
}

// span is a piece of a line without newlines.
type span struct {
	text string
	look look
}

// row is a line of spans.
type row []span

// parameters returns the parameters of the escape sequence for a look, or "".
func (t Theme) parameters(l look) string {
	if t == Plain {
		return ""
	}
	var all []string
	for _, a := range []struct {
		on   bool
		code string
	}{{l.bold, "1"}, {l.italic, "3"}, {l.underline, "4"}, {l.struck, "9"}} {
		if a.on {
			all = append(all, a.code)
		}
	}
	switch {
	case l.role == normal:
	case t == Palette:
		all = append(all, sgr[l.role])
	case t == Dark:
		all = append(all, "38;5;"+strconv.Itoa(dark[l.role]))
	case t == Light:
		all = append(all, "38;5;"+strconv.Itoa(light[l.role]))
	}
	return strings.Join(all, ";")
}

// line renders a row without spaces at its end. The escape sequences of a line end
// with it.
func (s Style) line(r row) string {
	var out strings.Builder
	style, url := "", ""
	for _, p := range trimmed(r) {
		if p.text == "" {
			continue
		}
		if p.look.url != url {
			url = p.look.url
			out.WriteString("\x1b]8;;" + url + "\x1b\\")
		}
		if next := s.Theme.parameters(p.look); next != style {
			if style != "" {
				out.WriteString("\x1b[m")
			}
			if next != "" {
				out.WriteString("\x1b[" + next + "m")
			}
			style = next
		}
		out.WriteString(p.text)
	}
	if style != "" {
		out.WriteString("\x1b[m")
	}
	if url != "" {
		out.WriteString("\x1b]8;;\x1b\\")
	}
	return out.String()
}

// lines renders rows.
func (s Style) lines(rows []row) []string {
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, s.line(r))
	}
	return out
}

// trimmed returns a row without white space at its end.
func trimmed(r row) row {
	for i := len(r) - 1; i >= 0; i-- {
		t := strings.TrimRight(r[i].text, " \t\u00a0")
		if t == r[i].text && t != "" {
			return r[:i+1]
		}
		if t != "" {
			return append(append(row(nil), r[:i]...), span{t, r[i].look})
		}
	}
	return nil
}
