package daemon

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	lineLimit = 4 << 10 // longest line that lastLine returns, in bytes
)

// LogFile returns the path of the log of a daemon that another command started. It
// is the stderr of that daemon.
func (e *Environment) LogFile() string { return filepath.Join(e.Home, "lashd.log") }

// lastLine returns the last line of a file. Of a line longer than lineLimit it
// returns the end. It reads only the end of the file, which may be large.
func lastLine(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, size-lineLimit), lineLimit))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1], err
}
