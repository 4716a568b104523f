package rlm

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// blanks are the characters that may stand around a tag on its line.
const blanks = " \t\r\v\f"

// place says which part of a reply a splitter reads.
type place int

const (
	inProse place = iota
	inCode
	afterCell // the first cell is closed: the rest of the reply is discarded
)

// splitter finds the first code cell of a reply: its lines <language> and </language>, and the lines between them. It
// implements turn.Splitter. Blank text before the first word of a reply belongs to no piece, so that no empty prose
// precedes a cell.
type splitter struct {
	opening, closing string // the tags
	at               place
	said             bool   // the reply has prose that is not blank
	blank            []byte // text before the first prose that is not blank
	line             []byte // the current line so far, if it can still be a tag
	passing          bool   // the current line is not a tag: its text is passed on as it arrives
	cr               bool   // in code: the current line ends with a carriage return, which may be part of the line break
	eol              string // in code: the last line break, which people do not see if the closing tag follows
	rune             []byte // the incomplete character at the end of the last delta
	out              []turn.Piece
}

// newSplitter returns the splitter for a reply whose cells have the tags of the language.
func newSplitter(language string) *splitter {
	return &splitter{opening: "<" + language + ">", closing: "</" + language + ">"}
}

// Write implements turn.Splitter.
func (s *splitter) Write(delta string) []turn.Piece {
	text := append(s.rune, delta...)
	whole := len(text) - incomplete(text)
	s.rune = bytes.Clone(text[whole:])
	s.take(text[:whole])
	return s.taken()
}

// Break implements turn.Splitter. The text that follows is on a line of its own.
func (s *splitter) Break() []turn.Piece {
	s.take(s.rune)
	s.rune = nil
	switch {
	case s.at == inProse && isTag(s.line, s.opening):
		s.open()
	case s.at == inProse:
		s.prose(s.line)
	case s.at == inCode && isTag(s.line, s.closing):
		s.close()
	case s.at == inCode:
		s.breakCode()
	}
	s.line, s.passing, s.cr, s.eol = nil, false, false, ""
	return s.taken()
}

// Done implements turn.Splitter.
func (s *splitter) Done() bool { return s.at == afterCell }

// taken returns the pieces that are known since it was called last.
func (s *splitter) taken() []turn.Piece {
	out := s.out
	s.out = nil
	return out
}

// incomplete returns the number of bytes at the end of text that are the beginning of a character.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n:]; utf8.RuneStart(c[0]) {
			if utf8.FullRune(c) {
				return 0
			}
			return n
		}
	}
	return 0
}

// take reads complete characters, line by line.
func (s *splitter) take(text []byte) {
	for len(text) > 0 && s.at != afterCell {
		end := bytes.IndexByte(text, '\n') + 1
		ends := end > 0
		if !ends {
			end = len(text)
		}
		if s.at == inProse {
			s.proseLine(text[:end], ends)
		} else {
			s.codeLine(bytes.TrimSuffix(text[:end], []byte{'\n'}), ends)
		}
		text = text[end:]
	}
}

// proseLine reads a part of a line outside of the cell, with its line break if it ends there.
func (s *splitter) proseLine(text []byte, ends bool) {
	if s.passing {
		s.prose(text)
		s.passing = !ends
		return
	}
	s.line = append(s.line, text...)
	switch {
	case ends && isTag(s.line, s.opening):
		s.open()
	case ends || !canBeTag(s.line, s.opening):
		s.prose(s.line)
		s.passing = !ends
	default:
		return
	}
	s.line = nil
}

// codeLine reads a part of a line of the cell, without its line break.
func (s *splitter) codeLine(text []byte, ends bool) {
	if !s.passing {
		s.line = append(s.line, text...)
		switch {
		case ends && isTag(s.line, s.closing):
			s.close()
			return
		case !ends && canBeTag(s.line, s.closing):
			return
		}
		text, s.line, s.passing = s.line, nil, true
		s.code(s.eol)
		s.eol = ""
	}
	s.codeText(string(text), ends)
}

// codeText passes on a part of a line of the cell that is not a tag. A carriage return at its end waits for what follows.
func (s *splitter) codeText(text string, ends bool) {
	if s.cr && (text != "" || ends) {
		text, s.cr = "\r"+text, false
	}
	text, s.cr = strings.CutSuffix(text, "\r")
	s.code(text)
	if !ends {
		return
	}
	s.eol = "\n"
	if s.cr {
		s.eol = "\r\n"
	}
	s.passing, s.cr = false, false
}

// open begins the cell with the current line.
func (s *splitter) open() {
	s.add(protocol.PartCode, string(s.line), "")
	s.at, s.blank = inCode, nil
}

// close ends the cell with the current line. Blanks after the tag are dropped.
func (s *splitter) close() {
	s.add(protocol.PartCode, s.eol+string(bytes.TrimRight(s.line, blanks+"\n")), "")
	s.at, s.line = afterCell, nil
}

// breakCode passes on what is held back of a cell that is not closed here. People do not see a line break at its end.
func (s *splitter) breakCode() {
	text := string(s.line)
	if s.cr {
		text += "\r"
	}
	shown := strings.TrimSuffix(text, "\r")
	if text != "" {
		shown = s.eol + shown
	}
	s.add(protocol.PartCode, s.eol+text, shown)
}

// prose passes on text outside of the cell.
func (s *splitter) prose(text []byte) {
	if !s.said {
		s.blank = append(s.blank, text...)
		if len(bytes.TrimSpace(text)) == 0 {
			return
		}
		s.said, text, s.blank = true, s.blank, nil
	}
	s.add(protocol.PartProse, string(text), string(text))
}

// code passes on text of the cell that people see.
func (s *splitter) code(text string) { s.add(protocol.PartCode, text, text) }

// add adds text to the last piece, or a new piece if its kind is another.
func (s *splitter) add(kind protocol.PartKind, text, shown string) {
	if text == "" {
		return
	}
	if n := len(s.out); n > 0 && s.out[n-1].Kind == kind {
		s.out[n-1].Text += text
		s.out[n-1].Shown += shown
		return
	}
	s.out = append(s.out, turn.Piece{Kind: kind, Text: text, Shown: shown})
}

// isTag reports whether a line, which may end with its line break, is a tag.
func isTag(line []byte, tag string) bool {
	return protocol.IsTag(strings.TrimSuffix(string(line), "\n"), tag)
}

// canBeTag reports whether the beginning of a line can become a tag.
func canBeTag(line []byte, tag string) bool {
	text := bytes.TrimLeft(line, blanks)
	if len(text) >= len(tag) {
		return isTag(line, tag)
	}
	return strings.HasPrefix(tag, string(text)) && isTag(append(line[:len(line):len(line)], tag[len(text):]...), tag)
}
