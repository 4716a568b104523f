package keystore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"lashd/engine/provider/keystore"
	"lashd/test/skip"
)

func TestFileReference(t *testing.T) {
	dir := t.TempDir()
	read := keystore.Reference{File: "k", Dir: dir}.Reader(nil)
	path := filepath.Join(dir, "k")
	t.Run("issue/18 a missing file is an error", func(t *testing.T) {
		if _, err := read(t.Context()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
	for text, want := range map[string]string{"one\n": "one", " two ": "two"} {
		t.Run("issue/18 a changed file is read again", func(t *testing.T) {
			write(t, path, text, 0o600)
			if key, err := read(t.Context()); key.Reveal() != want || err != nil {
				t.Errorf("%q, %v, want %q", key.Reveal(), err, want)
			}
		})
	}
	for text, want := range map[string]string{" \n": "has no key in it", strings.Repeat("x", 8<<10+1): "has more than 8192 bytes"} {
		t.Run("issue/18 a file that is no key is refused: "+want, func(t *testing.T) {
			write(t, path, text, 0o600)
			if _, err := read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// command returns the reader of a key command, which runs in dir.
func command(t *testing.T, dir, text string) func(context.Context) (string, error) {
	if runtime.GOOS == "windows" {
		skip.Unless(t, "POSIX", false, "the commands are for a POSIX shell")
	}
	read := keystore.Reference{Command: text, Dir: dir, Environ: []string{"PATH=" + os.Getenv("PATH"), "WHO=me"}}.Reader(nil)
	return func(ctx context.Context) (string, error) {
		key, err := read(ctx)
		return key.Reveal(), err
	}
}

func TestCommandReference(t *testing.T) {
	t.Run("issue/18 the output is the key, and the command runs once for five minutes", func(t *testing.T) {
		dir := t.TempDir()
		read := command(t, dir, `echo run >> runs; echo "  key-of-$WHO$OPENAI_API_KEY "; echo noise >&2`)
		for range 3 {
			if key, err := read(t.Context()); key != "key-of-me" || err != nil {
				t.Errorf("%q, %v", key, err)
			}
		}
		if runs, err := os.ReadFile(filepath.Join(dir, "runs")); string(runs) != "run\n" || err != nil {
			t.Errorf("%q, %v", runs, err)
		}
	})
	for text, want := range map[string]string{
		"echo key-hunter22; echo 'the vault is locked' >&2; exit 3": "exit code 3; run it in a terminal",
		"true":                                "the output of the key command has no key in it",
		"head -c 9000 /dev/zero | tr '\\0' h": "has more than 8192 bytes",
		"echo hunter22; yes hunter22 | head -c 1000000; kill -9 $$": "the key command failed",
	} {
		t.Run("issue/18 a failed command is an error without its output: "+text, func(t *testing.T) {
			key, err := command(t, t.TempDir(), text)(t.Context())
			if key != "" || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22") {
				t.Errorf("%q, %v, want %q", key, err, want)
			}
		})
	}
	t.Run("issue/18 who stops waiting for a command gets its own reason", func(t *testing.T) {
		reason := errors.New("no time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, reason)
		defer cancel()
		if _, err := command(t, t.TempDir(), "sleep 5; echo late")(ctx); !errors.Is(err, reason) {
			t.Errorf("%v", err)
		}
	})
}
