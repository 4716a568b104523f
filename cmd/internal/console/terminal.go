package console

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/term"

	"lashd/internal/termtext"
)

// Printable escapes the control characters of a text, so that it cannot control
// the terminal. Newlines and tabs stay.
func Printable(s string) string { return termtext.Printable(s) }

// Readable formats JSON without escapes for HTML.
func Readable(raw json.RawMessage) string { return termtext.Readable(raw) }

// OneLine returns the beginning of a text as a single printable line of at most
// width characters.
func OneLine(s string, width int) string { return termtext.OneLine(s, width) }

// Terminal reports whether f is a terminal. The null device is not one, though it
// is a character device as well.
func Terminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// PrintJSON prints v as JSON: indented on a terminal, else on one line. Control
// characters are escaped in both cases, which keeps the JSON valid.
func PrintJSON(v any) error {
	encode := json.Marshal
	if Terminal(os.Stdout) {
		encode = func(v any) ([]byte, error) { return json.MarshalIndent(v, "", "  ") }
	}
	data, err := encode(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(Stdout, Printable(string(data)))
	return err
}

// InJSON is the flag --json of commands that otherwise print text for people.
type InJSON struct {
	JSON bool `help:"Print JSON."`
}

// Columns returns the width of the terminal of f; 0 if it tells none.
func Columns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
