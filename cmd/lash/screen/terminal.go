package screen

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// terminal is the device behind a Screen. take puts it into raw mode and asks for
// the keys that a program needs; give undoes that. Both may be called any number
// of times, in any order.
type terminal struct {
	in, out *os.File
	simple  bool        // it may show the sequences that ask for more keys
	before  *term.State // what give restores; nil: the terminal is not taken
	raw     *term.State // what take set
}

// simple lists terminals that have no more than what VT100 had. Some of them show
// sequences that they do not know.
var simple = []string{"linux", "dumb", "vt100", "vt102", "vt220", "ansi", "cons25"}

// openTerminal returns the terminal of two files. It fails if one of them is not a
// terminal.
func openTerminal(in, out *os.File, env []string) (*terminal, error) {
	if !term.IsTerminal(in.Fd()) || !term.IsTerminal(out.Fd()) {
		return nil, fmt.Errorf("stdin or stdout is not a terminal")
	}
	t := &terminal{in: in, out: out}
	for _, e := range env {
		if name, ok := strings.CutPrefix(e, "TERM="); ok {
			t.simple = slices.Contains(simple, name)
		}
	}
	return t, nil
}

// size returns the size of the terminal, or 80 by 24 if it does not tell.
func (t *terminal) size() (width, height int) {
	width, height, err := term.GetSize(t.out.Fd())
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// take prepares the terminal for the program.
func (t *terminal) take() error {
	if t.before != nil {
		return nil
	}
	before, err := term.MakeRaw(t.in.Fd())
	if err != nil {
		return fmt.Errorf("switch the terminal to raw mode: %w", err)
	}
	t.before = before
	if t.raw, err = term.GetState(t.in.Fd()); err != nil {
		return fmt.Errorf("read the modes of the terminal: %w", err)
	}
	modes := ansi.SetModeBracketedPaste
	if !t.simple {
		modes += ansi.SetModeFocusEvent + ansi.SetModifyOtherKeys2 + ansi.PushKittyKeyboard(ansi.KittyDisambiguateEscapeCodes)
	}
	_, err = t.out.WriteString(modes)
	return err
}

// give restores the terminal for other programs. It also ends what an interrupted
// frame may have begun.
func (t *terminal) give() error {
	if t.before == nil {
		return nil
	}
	modes := ansi.ResetModeSynchronizedOutput + ansi.SetModeAutoWrap + ansi.SetModeTextCursorEnable + ansi.ResetModeBracketedPaste + ansi.ResetStyle
	if !t.simple {
		modes += ansi.ResetModeFocusEvent + ansi.ResetModifyOtherKeys + ansi.PopKittyKeyboard(1)
	}
	_, failed := t.out.WriteString(modes)
	err := term.Restore(t.in.Fd(), t.before)
	t.before = nil
	if err == nil {
		err = failed
	}
	return err
}

// lost reports whether another program, such as the shell, has changed the modes of
// the terminal since take.
func (t *terminal) lost() bool {
	now, err := term.GetState(t.in.Fd())
	return err == nil && t.before != nil && *now != *t.raw
}
