package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"

	"lashd/cmd/internal/providersetup"
)

// readHidden shows a prompt and reads a line from a terminal that shows nothing of it, even if the line is there at once. The terminal
// is as before when it returns, also after Ctrl-C and after a signal. It fails with context.Canceled, or with io.EOF if the input ends
// before anything was entered. (The library's own function ignores the end of the input and Ctrl-C, and leaves the terminal without echo
// if the process is killed by a signal.)
func readHidden(ctx context.Context, f *os.File, prompt string) ([]byte, error) {
	before, err := term.MakeRaw(f.Fd())
	if err != nil {
		return nil, err
	}
	defer term.Restore(f.Fd(), before) // if it fails, the terminal is gone
	fmt.Fprint(os.Stderr, prompt)
	return orDone(ctx, func() ([]byte, error) { return hiddenLine(f) })
}

// orDone returns the result of read, or the error of ctx if that ends first. read then waits on for input that the process, which ends
// soon, does not use.
func orDone[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// The control characters of hiddenLine.
const (
	ctrlC, ctrlD, ctrlH, ctrlU, del = 0x03, 0x04, 0x08, 0x15, 0x7f
)

// hiddenLine reads the bytes of a terminal in raw mode up to Enter, with the usual keys to correct them.
func hiddenLine(r io.Reader) (line []byte, err error) {
	var b [1]byte
	for len(line) <= providersetup.MaxPasted {
		n, err := r.Read(b[:])
		if n == 0 && err == nil {
			continue
		}
		if err != nil {
			return line, err
		}
		switch b[0] {
		case '\r', '\n':
			return line, nil
		case ctrlC:
			return nil, context.Canceled
		case ctrlD:
			if len(line) == 0 {
				return nil, io.EOF
			}
		case ctrlH, del:
			_, size := utf8.DecodeLastRune(line)
			line = line[:len(line)-size]
		case ctrlU:
			line = line[:0]
		default:
			line = append(line, b[0])
		}
	}
	return line, nil
}
