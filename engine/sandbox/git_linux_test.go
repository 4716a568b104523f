package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// git runs git commands of sh in a directory.
func git(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", "git() { command git -c user.name=a -c user.email=a@b -c protocol.file.allow=always \"$@\"; }\n"+script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

func TestRepositoriesElsewhere(t *testing.T) {
	home, p := user(t, "work/pkg/file", "lib/file", "plain/pkg/file", "fake/pkg/file")
	git(t, home, `git init -q .; git init -q lib; git -C lib commit -q --allow-empty -m x; git init -q work; cd work; git commit -q --allow-empty -m x
git submodule add -q ../lib vendor/mod; git worktree add -q ../tree; mkdir ../tree/pkg; mkdir -p ../fake/.git; printf 'gitdir: %s/work/.git\n' "$HOME" > ../fake/.git/x
mkdir ../lies ../lies2; echo "gitdir: ../work/.git/modules/vendor/mod" > ../lies/.git; echo "gitdir: ../work/.git/worktrees/tree" > ../lies2/.git`)
	for _, c := range []struct {
		row, workspace string
		writes         []string // besides the workspace
		keeps          []string
	}{
		{"a subdirectory of a repository", "work/pkg", []string{"work/.git"}, []string{"work/.git/config", "work/.git/hooks", "work/.git/modules/vendor/mod/config", "work/.git/modules/vendor/mod/hooks"}},
		{"a submodule", "work/vendor/mod", []string{"work/.git/modules/vendor/mod"}, []string{"work/.git/modules/vendor/mod/config", "work/vendor/mod/.git"}},
		{"a linked worktree", "tree", []string{"work/.git"}, []string{"tree/.git", "work/.git/config", "work/.git/worktrees/tree/commondir"}},
		{"a subdirectory of a linked worktree", "tree/pkg", []string{"work/.git"}, []string{"work/.git/config"}},
		{"a repository of the home directory is not the project's", "plain/pkg", nil, nil},
		{"a directory .git above that is no repository", "fake/pkg", nil, nil},
		{"a file .git that a submodule does not know", "lies", nil, []string{"lies/.git"}},
		{"a file .git that a worktree does not know", "lies2", nil, []string{"lies2/.git"}},
	} {
		box, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, c.workspace))
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, path := range box.Confinement.Sandbox.Write[1:] {
			got = append(got, strings.TrimPrefix(path, home+"/"))
		}
		if !slices.Equal(got, c.writes) {
			t.Errorf("part11/1 %s: a command also writes to %q, want %q", c.row, got, c.writes)
		}
		for _, name := range c.keeps {
			if !slices.Contains(box.Confinement.Sandbox.Keep, filepath.Join(home, name)) {
				t.Errorf("part11/1 %s: a command can change %s; it cannot change %q", c.row, name, box.Confinement.Sandbox.Keep)
			}
		}
		if len(c.keeps) == 0 && len(box.Confinement.Sandbox.Keep) != 0 {
			t.Errorf("part11/1 %s: a command cannot change %q", c.row, box.Confinement.Sandbox.Keep)
		}
	}
}

func TestLinkedFilesThatStartPrograms(t *testing.T) {
	home, p := user(t, "work/.git/config", "work/githooks/pre-commit", "work/settings/x", "work/plugin/plugin.json", ".agents/plugins/other/plugin.json", "elsewhere/x")
	for link, to := range map[string]string{
		"work/.git/hooks": "../githooks", "work/.vscode": "settings", ".agents/plugins/mine": filepath.Join(home, "work", "plugin"), "work/.idea": ".", "work/.envrc": "../elsewhere",
	} {
		if err := errors.Join(os.Symlink(to, filepath.Join(home, link))); err != nil {
			t.Fatal(err)
		}
	}
	box, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, "work"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".git/config", "githooks", "plugin", "settings"}
	for i, name := range want {
		want[i] = filepath.Join(home, "work", name)
	}
	if got := box.Confinement.Sandbox.Keep; !slices.Equal(got, want) {
		t.Errorf("part11/1 a command cannot change %q, want %q", got, want)
	}
}

func TestPartsOfARepositoryMovedAway(t *testing.T) {
	home, p := user(t)
	git(t, home, `git init -q --bare bare; rm -r bare/HEAD bare/objects bare/refs; git init -q work; mkdir -p work/.git/modules/sub; printf '[core]\n\trepositoryformatversion = 0\n' > work/.git/modules/sub/config`)
	for workspace, name := range map[string]string{"bare": "config", "work": ".git/modules/sub/config"} {
		box, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, workspace))
		if err != nil {
			t.Fatal(err)
		}
		if path := filepath.Join(home, workspace, name); !slices.Contains(box.Confinement.Sandbox.Keep, path) {
			t.Errorf("part11/1 after a command moved the other parts away, the next one can change %s", path)
		}
	}
}
