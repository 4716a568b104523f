package console

import "os"

// Paint is the meaning of coloured text. The colours are those of the terminal's own palette.
type Paint string

// The meanings. Colour never says anything that the text does not.
const (
	Plain   Paint = ""
	Heading Paint = "\x1b[1m"
	Good    Paint = "\x1b[32m"
	Waiting Paint = "\x1b[33m"
	Bad     Paint = "\x1b[31m"
)

// On returns a text for f in the colour of its meaning: if f is a terminal that has colours, NO_COLOR is not set, and TERM is not dumb.
func (p Paint) On(f *os.File, text string) string {
	if p == Plain || !colours(f) {
		return text
	}
	return string(p) + text + "\x1b[0m"
}

// colours reports whether text on f may have colours.
func colours(f *os.File) bool {
	kind := os.Getenv("TERM")
	return Terminal(f) && os.Getenv("NO_COLOR") == "" && kind != "" && kind != "dumb"
}
