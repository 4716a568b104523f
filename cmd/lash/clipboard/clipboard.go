// Package clipboard reads the clipboard of the desktop, with the program that the system
// has for it: wl-paste, xclip, or pngpaste, osascript and pbpaste.
package clipboard

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Content is what the clipboard has: an image or, if there is none, a text.
type Content struct {
	Image []byte
	Text  string
}

// System is where the clipboard is.
type System struct {
	OS     string              // as runtime.GOOS
	Getenv func(string) string // the environment of the process
}

// ErrEmpty means that the clipboard has neither an image nor a text.
var ErrEmpty = errors.New("the clipboard is empty")

// patience is the time in which a program must answer. The desktop asks the program
// that owns the clipboard, which may hang.
const patience = 5 * time.Second

// imageTypes are the types of images that models read, the best first.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// Read returns the content of the clipboard, of at most limit bytes.
func Read(ctx context.Context, s System, limit int) (Content, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	switch {
	case s.OS == "darwin":
		return readMac(ctx, limit)
	case s.OS == "windows":
		return Content{}, errors.New("the chat cannot read the clipboard of Windows; paste text with the terminal, and attach files with /attach FILE")
	case s.Getenv("WAYLAND_DISPLAY") != "":
		return readDesktop(ctx, wayland, limit)
	case s.Getenv("DISPLAY") != "":
		return readDesktop(ctx, x11, limit)
	}
	return Content{}, errors.New("there is no clipboard here, because neither WAYLAND_DISPLAY nor DISPLAY is set; copy the file to this machine and use /attach FILE")
}

// desktop is a program that reads the clipboard of a desktop, and its arguments.
type desktop struct {
	program, from string   // the program, and the package that has it
	types         []string // to list the types of the content
	read          []string // to read a type, which follows
	text          string   // the type of text
}

var (
	wayland = desktop{"wl-paste", "wl-clipboard", []string{"--list-types"}, []string{"--no-newline", "--type"}, "text"}
	x11     = desktop{"xclip", "xclip", []string{"-selection", "clipboard", "-out", "-target", "TARGETS"}, []string{"-selection", "clipboard", "-out", "-target"}, "UTF8_STRING"}
)

// readDesktop reads the clipboard with the program of a desktop.
func readDesktop(ctx context.Context, d desktop, limit int) (Content, error) {
	types, err := output(ctx, limit, d.program, d.types...)
	if errors.Is(err, exec.ErrNotFound) {
		return Content{}, fmt.Errorf("the program %s is missing; install the package %s, or use /attach FILE", d.program, d.from)
	}
	if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
		return Content{}, ErrEmpty // both programs fail if there is nothing
	}
	if err != nil {
		return Content{}, err
	}
	has := strings.Fields(string(types))
	for _, t := range imageTypes {
		if slices.Contains(has, t) {
			image, err := output(ctx, limit, d.program, append(slices.Clip(d.read), t)...)
			return Content{Image: image}, err
		}
	}
	text, err := output(ctx, limit, d.program, append(slices.Clip(d.read), d.text)...)
	if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil || err == nil && len(text) == 0 {
		return Content{}, ErrEmpty // such as files that a file manager has copied
	}
	return Content{Text: string(text)}, err
}

// readMac reads the clipboard of macOS. pngpaste converts more kinds of images, but is seldom
// installed.
func readMac(ctx context.Context, limit int) (Content, error) {
	image, err := output(ctx, limit, "pngpaste", "-")
	if errors.Is(err, exec.ErrNotFound) {
		var text []byte
		text, err = output(ctx, 2*limit+100, "osascript", "-e", "the clipboard as «class PNGf»")
		image = appleData(string(text))
	}
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed || ctx.Err() != nil {
		return Content{}, err
	}
	if err == nil && len(image) > 0 {
		return Content{Image: image}, nil
	}
	text, err := output(ctx, limit, "pbpaste")
	if err == nil && len(text) == 0 {
		err = ErrEmpty
	}
	return Content{Text: string(text)}, err
}

// appleData decodes an image as osascript prints it: «data PNGf8950…». It returns nil
// for anything else.
func appleData(text string) []byte {
	digits, ok := strings.CutPrefix(strings.TrimSpace(text), "«data PNGf")
	if !ok {
		return nil
	}
	data, err := hex.DecodeString(strings.TrimSuffix(digits, "»"))
	if err != nil {
		return nil
	}
	return data
}

// output runs a program and returns what it prints, at most limit bytes.
func output(ctx context.Context, limit int, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out := &limited{left: limit}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case out.left < 0:
		return nil, fmt.Errorf("the clipboard has more than %d bytes", limit)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not answer within %s: %w", program, patience, context.Cause(ctx))
	}
	return out.data, err
}

// limited keeps what is written to it, up to a limit.
type limited struct {
	data []byte
	left int // bytes; negative: there was more
}

// errFull ends a program that prints too much.
var errFull = errors.New("full")

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errFull
	}
	l.data = append(l.data, p...)
	return len(p), nil
}
