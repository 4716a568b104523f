package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// user makes a home directory with these files, and returns it with its places.
func user(t *testing.T, files ...string) (string, Places) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return base, Places{Home: base, State: filepath.Join(base, "state"), Scratch: filepath.Join(base, "state", "sandbox")}
}

func TestWorkspacesWithSecrets(t *testing.T) {
	home, p := user(t, "state/keys.json", ".ssh/id", "work/file", ".config/gh/hosts.yml")
	for workspace, refused := range map[string]bool{"": true, ".ssh": true, ".config": true, ".config/gh": true, "state": true, "work": false} {
		_, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, workspace))
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "must not see") {
			t.Errorf("part11/1 a workspace that is, contains or is in something hidden, %q: %v", workspace, err)
		}
	}
	if _, err := p.For(protocol.SandboxReadOnly, "/"); err == nil || !strings.Contains(err.Error(), "root directory") {
		t.Errorf("part11/1 the root directory: %v", err)
	}
}

func TestPrepareRepairs(t *testing.T) {
	home, p := user(t, "work/file", "other/file")
	box, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, "work"))
	if err != nil {
		t.Fatal(err)
	}
	temp := box.Confinement.Sandbox.View.Temp
	for name, harm := range map[string]func() error{
		"a file in place of the caches": func() error { return os.WriteFile(filepath.Join(temp, "cache"), nil, 0o600) },
		"a link in place of the caches": func() error { return os.Symlink(filepath.Join(home, "other", "new"), filepath.Join(temp, "cache")) },
		"no rights":                     func() error { return os.Chmod(temp, 0) },
	} {
		if err := errors.Join(os.RemoveAll(filepath.Join(temp, "cache")), harm()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, "work")); err != nil {
			t.Errorf("part11/1 %s: %v", name, err)
		}
		if info, err := os.Lstat(filepath.Join(temp, "cache")); err != nil || !info.IsDir() {
			t.Errorf("part11/1 %s: the caches are %v, %v", name, info, err)
		}
		if _, err := os.Lstat(filepath.Join(home, "other", "new")); err == nil {
			t.Errorf("part11/1 %s: a link of the command was followed", name)
		}
	}
}

func TestRepositories(t *testing.T) {
	home, p := user(t, "work/.git/config", "work/.git/HEAD", "work/.git/modules/sub/config", "work/.git/worktrees/w/commondir", "bare/HEAD", "bare/config", "bare/objects/x", "bare/refs/x")
	for workspace, want := range map[string][]string{
		"work": {".git/config", ".git/hooks", ".git/modules/sub/config", ".git/worktrees/w/commondir"},
		"bare": {"config", "hooks"},
	} {
		box, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, workspace))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want {
			if path := filepath.Join(home, workspace, name); !slices.Contains(box.Confinement.Sandbox.View.Keep, path) {
				t.Errorf("part11/1 a command can change %s: it cannot change %q", path, box.Confinement.Sandbox.View.Keep)
			}
		}
	}
}
