package prompt

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Block is a part of the prompt that is shown by a label, and moved over and
// deleted as one: a long pasted text, or an attached file. It is never changed.
type Block struct {
	text string // of a pasted text
	file *protocol.Attachment
}

// A pasted text with more lines or more characters than these becomes a block.
const (
	mostPastedLines      = 10
	mostPastedCharacters = 2000
)

// blockStyle sets the labels of blocks apart from typed text.
var blockStyle = lipgloss.NewStyle().Foreground(lipgloss.Cyan)

// Label returns how a block is shown, such as "[pasted 5,000 lines]" or
// "[image a.png 34 KB]".
func (b *Block) Label() string {
	if f := b.file; f != nil && len(f.Data) == 0 && f.Digest != "" {
		return b.sent() // the daemon has the contents
	}
	if f := b.file; f != nil {
		return fmt.Sprintf("[%s %s %s]", fileKind(f), fileName(f), fileSize(len(f.Data)))
	}
	if n := strings.Count(strings.TrimSuffix(b.text, "\n"), "\n") + 1; n > 1 {
		return "[pasted " + thousands(n) + " lines]"
	}
	return "[pasted " + thousands(utf8.RuneCountInString(b.text)) + " characters]"
}

// sent returns the text that stands for a block in the message. That of a file only
// names it, because the file itself is sent, too.
func (b *Block) sent() string {
	if b.file == nil {
		return b.text
	}
	return Named(b.file)
}

// Named returns the text that stands for a file in a message, such as "[image a.png]".
func Named(f *protocol.Attachment) string { return "[" + fileKind(f) + " " + fileName(f) + "]" }

// fileKind returns "image", or "file" for anything else.
func fileKind(f *protocol.Attachment) string {
	if strings.HasPrefix(f.Type, "image/") {
		return "image"
	}
	return "file"
}

// fileName returns the name of a file on one line of at most 40 characters.
func fileName(f *protocol.Attachment) string { return termtext.OneLine(f.Name, 40) }

// fileSize formats a number of bytes in KB, rounded up, or in MB.
func fileSize(n int) string {
	if n > 1<<20 {
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KB", (n+1023)/1024)
}

// thousands formats a number with commas, such as "5,000".
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Paste inserts a pasted text at the cursor. A long one becomes a block, which
// Expand turns into ordinary text.
func (e *Editor) Paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	text = strings.ToValidUTF8(text, "\uFFFD")
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if lines <= mostPastedLines && utf8.RuneCountInString(text) <= mostPastedCharacters {
		e.replace(e.at, e.at, parse(text), other)
		return
	}
	e.insertBlock(&Block{text: text})
}

// Attach inserts a file at the cursor, with a space after it.
func (e *Editor) Attach(f *protocol.Attachment) {
	e.insertBlock(&Block{file: f})
	e.Insert(" ")
}

// insertBlock inserts a block at the cursor.
func (e *Editor) insertBlock(b *Block) {
	e.replace(e.at, e.at, text{{cells: []cell{{width: lipgloss.Width(b.Label()), block: b}}}}, other)
}

// Expand turns the pasted text before or after the cursor into ordinary text, with
// the cursor at its end. It reports whether there is one.
func (e *Editor) Expand() bool {
	e.ready()
	cells := e.text[e.at.line].cells
	for _, i := range []int{e.at.cell - 1, e.at.cell} {
		if i >= 0 && i < len(cells) && cells[i].block != nil && cells[i].block.file == nil {
			e.replace(pos{e.at.line, i}, pos{e.at.line, i + 1}, parse(cells[i].block.text), other)
			return true
		}
	}
	return false
}

// Editable returns the text for another editor: pasted texts are expanded, and
// files are shown by their labels.
func (e *Editor) Editable() string {
	e.ready()
	return e.text.write(func(b *Block) string {
		if b.file != nil {
			return b.Label()
		}
		return b.text
	})
}

// SetEdited replaces the text by one that another editor returned. A label of a
// file that is still there becomes the file again.
func (e *Editor) SetEdited(text string) {
	e.ready()
	files := map[string]*Block{}
	for _, b := range e.text.blocks() {
		if b.file != nil {
			files[b.Label()] = b
		}
	}
	e.Set(text)
	for label, b := range files {
		e.restore(label, b)
	}
	e.at = e.text.end()
}

// restore replaces the first occurrence of a label by its block, and reports whether there is one.
func (e *Editor) restore(label string, b *Block) bool {
	cells := len(segment(label))
	for i, l := range e.text {
		before, _, found := strings.Cut(text{l}.write(func(*Block) string { return "\x00" }), label)
		if !found {
			continue
		}
		from := pos{i, len(segment(before))}
		e.at = from
		e.replace(from, pos{i, from.cell + cells}, text{{}}, other)
		e.insertBlock(b)
		return true
	}
	return false
}
