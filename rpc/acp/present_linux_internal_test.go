package acp

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPresentFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "text", "/proc/self/status": "", "/dev/zero": ""} {
		t.Run("outside/10 what an editor is shown of a file before it is changed: "+filepath.Base(path), func(t *testing.T) {
			if got, ok := present(path); got != want || ok != (want != "") {
				t.Errorf("it is %.20q, %v", got, ok)
			}
		})
	}
}
