package cli

import (
	"encoding/json"
	"fmt"
	"os"

	"lashd/internal/termtext"
)

// printable is what a terminal may be shown of a text.
func printable(s string) string { return termtext.Printable(s) }

// readable is JSON as people write it.
func readable(raw json.RawMessage) string { return termtext.Readable(raw) }

// oneLine is the beginning of a text, for a line of its own.
func oneLine(s string, width int) string { return termtext.OneLine(s, width) }

// terminal tells whether a person is at the other end of a file.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// printJSON prints a document: indented for people, on one line for programs.
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

// inJSON says how results are printed.
type inJSON struct {
	JSON *bool `help:"Print JSON (default unless stdout is a terminal)." negatable:""`
}

func (j inJSON) wantsJSON() bool {
	if j.JSON != nil {
		return *j.JSON
	}
	return !terminal(os.Stdout)
}
