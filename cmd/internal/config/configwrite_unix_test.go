//go:build unix

package config_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/config"
)

// writerVariable has the data directory of the process that writes until it is killed.
const writerVariable = "LASHD_TEST_CONFIG_WRITER"

// longConfig is a config.toml of many pages that ends with its last line only if it is whole.
func longConfig(n int) string {
	return strings.Repeat("# filler\n", 20_000) + fmt.Sprintf("model = \"openai/m%d\"\n# end\n", n)
}

func TestKilledWriters(t *testing.T) {
	if home := os.Getenv(writerVariable); home != "" {
		for n := 0; ; n++ {
			if err := config.Edit(t.Context(), home, func(e *config.Editor) error { return e.Write([]byte(longConfig(n))) }); err != nil {
				t.Fatal(err)
			}
			fmt.Println("written")
		}
	}
	home := t.TempDir()
	path := config.File(home)
	linked := filepath.Join(t.TempDir(), "mine.toml")
	for _, file := range []string{path, linked} {
		if file == linked {
			if err := os.WriteFile(linked, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(linked, path); err != nil {
				t.Fatal(err)
			}
		}
		for kill := range 20 {
			w := exec.Command(os.Args[0], "-test.run=TestKilledWriters")
			w.Env = append(os.Environ(), writerVariable+"="+home)
			out, err := w.StdoutPipe()
			if err == nil {
				err = w.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for n := 0; n <= kill%4 && lines.Scan(); n++ { // it writes the next one when it is killed
			}
			_ = w.Process.Kill()
			_ = w.Wait() // it was killed
			if data, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(data), "\n# end\n") {
				t.Fatalf("part13/vscode config.toml after a SIGKILL has %d bytes, and not all of them: %v", len(data), err)
			}
		}
		if err := config.Edit(t.Context(), home, func(e *config.Editor) error { return e.Write([]byte("# last\n")) }); err != nil {
			t.Errorf("part13/vscode a write after killed ones: %v", err)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || file == linked && len(left) != 1 || file == path && len(left) != 2 {
			t.Errorf("part13/vscode beside config.toml and its lock there are %q, %v", left, err)
		}
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("part13/vscode the link to config.toml is gone: %v, %v", info, err)
	}
}

func TestWaitingWriter(t *testing.T) {
	home := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	err := config.Edit(t.Context(), home, func(*config.Editor) error {
		cancel()
		return config.Edit(ctx, home, func(*config.Editor) error { return nil })
	})
	if err == nil || !strings.Contains(err.Error(), "lock "+filepath.Join(home, "config.lock")) {
		t.Errorf("part13/vscode two edits at once: %v", err)
	}
}
