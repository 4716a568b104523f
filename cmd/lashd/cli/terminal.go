package cli

import (
	"encoding/json"
	"fmt"
	"os"

	"lashd/internal/termtext"
)

// printable escapes the control characters of a text, so that it cannot control
// the terminal. Newlines and tabs stay.
func printable(s string) string { return termtext.Printable(s) }

// readable formats JSON without escapes for HTML.
func readable(raw json.RawMessage) string { return termtext.Readable(raw) }

// oneLine returns the beginning of a text as a single printable line of at most
// width characters.
func oneLine(s string, width int) string { return termtext.OneLine(s, width) }

// terminal reports whether f is a terminal. The null device is not one, though it
// is a character device as well.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// printJSON prints v as JSON: indented on a terminal, else on one line. Control
// characters are escaped in both cases, which keeps the JSON valid.
func printJSON(v any) error {
	encode := json.Marshal
	if terminal(os.Stdout) {
		encode = func(v any) ([]byte, error) { return json.MarshalIndent(v, "", "  ") }
	}
	data, err := encode(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, printable(string(data)))
	return err
}

// inJSON is the flag --json of commands that print a table or JSON.
type inJSON struct {
	JSON *bool `help:"Print JSON (default unless stdout is a terminal)." negatable:""`
}

// wantsJSON reports whether to print JSON: as the flag says, else unless stdout is
// a terminal.
func (j inJSON) wantsJSON() bool {
	if j.JSON != nil {
		return *j.JSON
	}
	return !terminal(os.Stdout)
}
