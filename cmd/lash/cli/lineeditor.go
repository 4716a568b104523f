package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// lineEditor reads lines from a terminal, with editing keys and a history. The
// terminal is in raw mode only while it reads a line, so that Ctrl-C is a signal in
// between. One goroutine uses it.
type lineEditor struct {
	tty         *os.File
	edits       *term.Terminal
	interrupted bool // Ctrl-C ended the newest line
}

// errInterrupted means that Ctrl-C ended a line.
var errInterrupted = errors.New("interrupted")

// newLineEditor returns an editor for stdin that shows its lines on stderr.
func newLineEditor() *lineEditor {
	l := &lineEditor{tty: os.Stdin}
	l.edits = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{interruptible{os.Stdin}, os.Stderr}, "")
	l.edits.AutoCompleteCallback = l.key
	return l
}

// readLine shows a prompt and reads a line. It fails with io.EOF after Ctrl-D on an
// empty line, with errInterrupted after Ctrl-C, or if ctx ends.
func (l *lineEditor) readLine(ctx context.Context, prompt string) (string, error) {
	before, err := term.MakeRaw(int(l.tty.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(l.tty.Fd()), before) // if it fails, the terminal is gone
	if width, height, err := term.GetSize(int(l.tty.Fd())); err == nil && width > 0 {
		_ = l.edits.SetSize(width, height) // it fails only if the terminal is gone
	}
	l.edits.SetPrompt(prompt)
	l.interrupted = false
	line, err := orDone(ctx, l.edits.ReadLine)
	if err == nil && l.interrupted {
		return "", errInterrupted
	}
	return line, err
}

// interruptKey stands for Ctrl-C in the input of the editor, which would take it for
// the end of the input. No terminal sends it.
const interruptKey = 0x1f

// key handles the keys that the editor does not know: Ctrl-C empties the line, and
// Tab indents.
func (l *lineEditor) key(line string, pos int, key rune) (string, int, bool) {
	switch key {
	case interruptKey:
		l.interrupted = true
		return "", 0, true
	case '\t':
		const indent = "    "
		return line[:pos] + indent + line[pos:], pos + len(indent), true
	}
	return line, pos, false
}

// interruptible replaces each Ctrl-C in the input by interruptKey and Enter.
type interruptible struct{ from io.Reader }

// Read reads at most half of what p can hold, because the replacement has two
// bytes.
func (r interruptible) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	n, err := r.from.Read(p[:len(p)/2])
	return copy(p, strings.ReplaceAll(string(p[:n]), "\x03", string(rune(interruptKey))+"\r")), err
}
