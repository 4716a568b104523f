package acp

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFileText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "text", "/proc/self/status": "", "/dev/zero": ""} {
		t.Run("outside/10 only regular files are read for a diff: "+filepath.Base(path), func(t *testing.T) {
			if got, ok := fileText(path); got != want || ok != (want != "") {
				t.Errorf("got %.20q, %v", got, ok)
			}
		})
	}
}
