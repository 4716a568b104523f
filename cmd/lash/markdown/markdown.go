// Package markdown renders the Markdown of models for a terminal, as lines with
// colors.
//
// The chat and lash run feed a growing reply to a Stream, which returns each line
// as soon as later text cannot change it. Goldmark parses the blocks and Chroma
// highlights code. Text is untrusted: it passes through termtext, so it cannot
// control the terminal.
//
// Paragraphs, list items and quotes are one line each, however long. The terminal
// wraps them, so copied text has no extra newlines. No line ends with a space. A
// Stream belongs to one goroutine; all functions are safe for concurrent use.
package markdown

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"lashd/internal/termtext"
)

// Style says how lines are rendered. The zero value is text without escape
// sequences for a terminal of any width.
type Style struct {
	// Width is the number of columns of the terminal, which tables fit. 0 means no
	// limit.
	Width int
	// Theme has the colors.
	Theme Theme
	// Links says that the terminal opens links (OSC 8). Otherwise the address of a
	// link follows its text in parentheses.
	Links bool
	// File returns the address of a file that the text names, such as main.go:12, or
	// "" if there is no such file. Line is 0 if the text has none. It is called only
	// with Links. Nil: no file is linked.
	File func(path string, line int) string
}

// Stream renders a text that grows. The finished lines do not depend on how the
// text was cut into pieces.
type Stream struct {
	style   Style
	partial []byte // the last line, which has no newline yet
	split   splitter
	fence   *fence // the open top-level code block, or nil
	began   bool   // a line was finished
	light   bool   // this is a copy for Rest: code is not highlighted
}

// NewStream returns a Stream without text.
func NewStream(style Style) *Stream { return &Stream{style: style} }

// Render renders a whole text.
func Render(text string, style Style) []string {
	s := NewStream(style)
	return append(s.Add(text), s.End()...)
}

// Add appends text. It returns the lines that this finishes, without newlines.
func (s *Stream) Add(text string) (finished []string) {
	for {
		line, rest, ended := strings.Cut(text, "\n")
		s.partial = append(s.partial, line...)
		if !ended {
			return finished
		}
		finished = append(finished, s.line(string(s.partial))...)
		s.partial, text = s.partial[:0], rest
	}
}

// End returns the lines that are left at the end of the text. The Stream is then as
// new.
func (s *Stream) End() (finished []string) {
	if len(s.partial) > 0 {
		finished = s.line(string(s.partial))
	}
	finished = append(finished, s.finish()...)
	*s = Stream{style: s.style}
	return finished
}

// restSize is the number of bytes of an unfinished block that Rest renders, so that
// it takes the same time however long the block is. It is more than a screen
// shows.
const restSize = 8 << 10

// Rest returns the lines of the unfinished block as they will be if the text ends
// here, but without the colors of code. Only the end of a very long block is
// rendered.
func (s *Stream) Rest() []string {
	c := *s
	c.light = true
	c.split.lines = tail(c.split.lines, c.split.kind)
	if s.fence != nil {
		f := *s.fence
		f.done = max(f.done, len(f.lines)-restSize/64)
		c.fence = &f
	}
	last := wholeRunes(s.partial[max(0, len(s.partial)-restSize):])
	if strings.Trim(last, "`~") == "" {
		last = "" // may become the fence of a code block
	}
	var out []string
	if s.fence == nil && atxHeading.MatchString(last) {
		last = closed(last)
	}
	if last != "" {
		out = c.line(last)
	}
	c.split.closeInline()
	c.split.closeTable()
	return append(out, c.finish()...)
}

// tail returns the first and the last lines of a block, about restSize bytes of
// them. Without its first line a list item would not be one; a table also needs its
// second line.
func tail(lines []string, kind blockKind) []string {
	size, from := 0, len(lines)
	for from > 0 && size < restSize {
		from--
		size += len(lines[from])
	}
	head := 0
	switch kind {
	case listBlock:
		head = 1
	case paragraphBlock:
		if len(lines) > 1 && tableDelimiter.MatchString(lines[1]) {
			head = 2
		}
	}
	if from <= head {
		return append([]string(nil), lines...)
	}
	return append(append([]string(nil), lines[:head]...), lines[from:]...)
}

// wholeRunes returns text without the bytes of a character that is cut at either end.
func wholeRunes(text []byte) string {
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				text = text[:i]
			}
			break
		}
	}
	return string(bytes.TrimRight(text, "\r"))
}

// line adds a whole line of the source and returns the lines that this finishes.
func (s *Stream) line(text string) (out []string) {
	text = termtext.Printable(strings.TrimSuffix(text, "\r"))
	if s.fence != nil {
		return s.codeLine(text)
	}
	finished, again := s.split.line(text)
	if finished != nil {
		out = s.block(*finished)
	}
	if again {
		if f := newFence(text); f != nil {
			return append(out, s.openFence(f)...)
		}
		if next := s.split.start(text); next != nil {
			out = append(out, s.block(*next)...)
		}
	}
	return out
}

// finish ends the open block and returns its lines.
func (s *Stream) finish() []string {
	if s.fence != nil {
		return s.closeFence()
	}
	if b := s.split.take(); b != nil {
		return s.block(*b)
	}
	return nil
}

// block renders a block.
func (s *Stream) block(b block) []string { return s.separate(b.gap, s.style.block(b)) }

// separate puts an empty line before the lines of a block if the source has one
// there. A text does not begin with an empty line.
func (s *Stream) separate(gap bool, lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	if gap && s.began {
		lines = append([]string{""}, lines...)
	}
	s.began = true
	return lines
}
