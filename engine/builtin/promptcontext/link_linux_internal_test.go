package promptcontext

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lashd/internal/pathresolve"
)

func TestDirectoryReplacedByLink(t *testing.T) {
	t.Run("outside/7 a directory that was replaced by a link is not read through the link", func(t *testing.T) {
		top, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(top, "outside"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, "outside/AGENTS.md"), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("outside", filepath.Join(top, "repo")); err != nil {
			t.Fatal(err)
		}
		l := &looker{files: reader{kept: new(shelf)}}
		if all := l.project(t.Context(), project{dirs: []string{filepath.Join(top, "repo")}}); len(all) > 0 {
			t.Errorf("the prompt has %v", all)
		}
		if _, err := l.files.read(filepath.Join(top, "repo"), "AGENTS.md"); !errors.Is(err, pathresolve.ErrReplaced) {
			t.Errorf("error %v", err)
		}
	})
}
