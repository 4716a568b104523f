//go:build unix

package content_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"lashd/engine/proc"
	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
)

// approve is what a plugin reaches that runs one program in a directory.
func approve(t *testing.T, dir, name string) manifest.Beyond {
	t.Helper()
	root, err := os.OpenRoot(files{"plugin.json": `{"name": "p", "lashd": {"process": {"command": ["` + name + `"]}}}`}.in(t, t.TempDir()))
	check(t, err)
	defer root.Close()
	p, err := manifest.Load(root)
	check(t, err)
	b, err := p.Beyond(t.Context(), manifest.Finder{Look: func(name string) (string, error) { return filepath.Join(dir, name), nil }})
	check(t, err)
	return b
}

// program copies a program of the system.
func program(t *testing.T, of, to string) {
	t.Helper()
	path, err := exec.LookPath(of)
	check(t, err)
	from, err := os.Open(path)
	check(t, err)
	defer from.Close()
	into, err := os.OpenFile(to+".new", os.O_WRONLY|os.O_CREATE, 0o755)
	check(t, err)
	_, err = io.Copy(into, from)
	check(t, err, into.Close(), os.Rename(to+".new", to))
}

// run runs a program that was opened, and gives what it prints.
func run(t *testing.T, p content.Program, held *proc.Confinement, argv ...string) string {
	t.Helper()
	var out bytes.Buffer
	c, err := proc.Start(t.Context(), proc.Command{Argv: argv, Path: p.Path, Program: p.Runs, Confine: held, Stdout: &out, Stderr: &out})
	check(t, err, p.Close())
	_, err = c.Wait()
	check(t, err)
	return strings.TrimSpace(out.String())
}

func TestOnlyTheApprovedProgramIsRun(t *testing.T) {
	var programs content.Programs
	dir := t.TempDir()
	at := filepath.Join(dir, "tool")
	program(t, "echo", at)
	b := approve(t, dir, "tool")
	open := func() (content.Program, error) { return programs.Open(t.Context(), b, "tool") }
	t.Run("reliability/T6 the approved program", func(t *testing.T) {
		p, err := open()
		check(t, err)
		if got := run(t, p, nil, "echo", "hello"); got != "hello" {
			t.Errorf("it says %q", got)
		}
		check(t, programs.Check(t.Context(), b))
	})
	t.Run("reliability/T6 a program replaced after it was opened", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			return // there a program is run from its place
		}
		for _, held := range []*proc.Confinement{nil, {Limits: proc.Limits{OpenFiles: 50}}} {
			p, err := open()
			check(t, err)
			program(t, "false", at)
			if got := run(t, p, held, "echo", "hello"); got != "hello" {
				t.Errorf("held to %+v it says %q", held, got)
			}
			program(t, "echo", at)
		}
	})
	t.Run("reliability/T6 another one", func(t *testing.T) {
		program(t, "false", at)
		if _, err := open(); !errors.Is(err, content.ErrProgram) {
			t.Errorf("got %v", err)
		}
		if err := programs.Check(t.Context(), b); !errors.Is(err, content.ErrProgram) {
			t.Errorf("got %v", err)
		}
		program(t, "echo", at)
		check(t, programs.Check(t.Context(), b))
	})
	t.Run("reliability/T6 other bytes of the same size and time in the same file", func(t *testing.T) {
		text, err := os.ReadFile(at)
		check(t, err)
		info, err := os.Stat(at)
		check(t, err)
		for range 200 {
			flip(t, at, text, info.ModTime())
			if _, err := open(); !errors.Is(err, content.ErrProgram) {
				t.Fatalf("got %v", err)
			}
			flip(t, at, text, info.ModTime())
			check(t, programs.Check(t.Context(), b))
		}
	})
	t.Run("reliability/T6 a link that leads elsewhere", func(t *testing.T) {
		check(t, os.Rename(at, at+".real"), os.Symlink(at+".real", at))
		check(t, programs.Check(t.Context(), b))
		program(t, "false", at+".evil")
		check(t, os.Remove(at), os.Symlink(at+".evil", at))
		if _, err := open(); !errors.Is(err, content.ErrProgram) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("reliability/T6 an unapproved program", func(t *testing.T) {
		if _, err := programs.Open(t.Context(), b, "other"); err == nil || err.Error() != `the program "other" is not approved` {
			t.Errorf("got %v", err)
		}
	})
	t.Run("reliability/T6 none", func(t *testing.T) {
		check(t, os.Remove(at))
		if _, err := open(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

// flip changes the last byte of a file in place, and sets the time back.
func flip(t *testing.T, path string, text []byte, at time.Time) {
	t.Helper()
	text[len(text)-1] ^= 1
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteAt(text[len(text)-1:], int64(len(text)-1))
	check(t, err, f.Close(), os.Chtimes(path, at, at))
}

func TestAScriptIsCheckedAndRunFromItsPlace(t *testing.T) {
	var programs content.Programs
	dir := t.TempDir()
	at := filepath.Join(dir, "tool")
	check(t, os.WriteFile(at, []byte("#!/bin/sh\necho $0\n"), 0o755))
	b := approve(t, dir, "tool")
	t.Run("reliability/T6 a plugin finds its own directory", func(t *testing.T) {
		p, err := programs.Open(t.Context(), b, "tool")
		check(t, err)
		if got := run(t, p, nil, "tool"); got != b.Executables[0].Path {
			t.Errorf("it is %q", got)
		}
	})
	t.Run("reliability/T6 another program is rejected", func(t *testing.T) {
		check(t, os.WriteFile(at, []byte("#!/bin/sh\necho no\n"), 0o755))
		if _, err := programs.Open(t.Context(), b, "tool"); !errors.Is(err, content.ErrProgram) {
			t.Errorf("got %v", err)
		}
	})
}
