package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
)

// logsCommand implements lash logs.
type logsCommand struct {
	Follow bool `short:"f" help:"Also print new lines as they come, until Ctrl-C."`
	Lines  uint `short:"n" name:"lines" help:"Number of newest lines to print." default:"50"`
}

// Help is shown by --help.
func (logsCommand) Help() string {
	return `Prints the newest lines of the daemon's log, lashd.log in the data directory. A daemon that you started with lashd serve logs to
its own stderr instead. lash plugin logs prints the messages of a plugin.

Examples:
  lash logs -n 200
  lash logs -f`
}

const (
	logPoll = 200 * time.Millisecond // pause between two looks at a log that is followed
	logPage = 64 << 10               // bytes that are read at once, from the end of the log
)

// Run prints the end of the log and, with --follow, what is added to it.
func (c logsCommand) Run(ctx context.Context, e *daemon.Environment) error {
	f, err := os.Open(e.LogFile())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no log yet: %s does not exist; lashd writes it when another command starts it", e.LogFile())
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, end, err := tailOf(f, int(c.Lines))
	if err != nil {
		return err
	}
	printLog(text)
	if !c.Follow {
		return nil
	}
	return followLog(ctx, f, end)
}

// tailOf returns the last n lines of a file, and its size. It reads only as much of the file as it needs.
func tailOf(f *os.File, n int) (text []byte, size int64, err error) {
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		return nil, 0, err
	}
	for at := size; at > 0 && bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) < n; {
		page := make([]byte, min(at, logPage))
		at -= int64(len(page))
		if _, err := f.ReadAt(page, at); err != nil {
			return nil, 0, err
		}
		text = append(page, text...)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return bytes.Join(lines[max(0, len(lines)-n):], nil), size, nil
}

// followLog prints what is added to the log after a position, until ctx is done. lashd empties a log that is too long and begins it again;
// then it prints from the start.
func followLog(ctx context.Context, f *os.File, at int64) error {
	tick := time.NewTicker(logPoll)
	defer tick.Stop()
	for {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() < at {
			at = 0
		}
		text, err := io.ReadAll(io.NewSectionReader(f, at, info.Size()-at))
		if err != nil {
			return err
		}
		printLog(text)
		at += int64(len(text))
		if err := console.Stdout.Failed(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// printLog prints a part of the log, without control characters.
func printLog(text []byte) { fmt.Fprint(console.Stdout, console.Printable(string(text))) }
