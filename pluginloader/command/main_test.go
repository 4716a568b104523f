//go:build unix

package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/test/left"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(left.Childless{M: m, Mark: "LASHD_CHILD=" + nonce})
}

// nonce marks all processes of the tests.
var nonce = fmt.Sprintf("command-test-%d-%d", os.Getpid(), time.Now().UnixNano())

var quiet = slog.New(slog.DiscardHandler)

// config is a plugin in a directory of the test.
func config(t testing.TB) Config {
	return Config{ID: "kit", Root: t.TempDir(), Data: t.TempDir(), Environ: os.Environ(), Nonce: nonce, Output: child.NewLog(quiet), Log: quiet}
}

// part is a Part that leaves nothing behind when the test ends.
func part(t testing.TB, c Config) *Part {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

// load reads the plugin that the files of a directory make, as the loader does.
func load(t testing.TB, dir string) *manifest.Plugin {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m, err := manifest.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// write puts files into a directory; those that begin with #! may be run.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}
