package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	home, p := user(t, "state/keys.json", ".ssh/id", "work/file", ".config/gh/hosts.yml", "plugin/sub/file")
	if err := errors.Join(os.MkdirAll(filepath.Join(home, ".agents", "plugins"), 0o700), os.Symlink(filepath.Join(home, "plugin"), filepath.Join(home, ".agents", "plugins", "mine"))); err != nil {
		t.Fatal(err)
	}
	for workspace, want := range map[string]protocol.SandboxMode{
		"": protocol.SandboxReadOnly, ".ssh": "", ".config": protocol.SandboxReadOnly, ".config/gh": "", "state": "", "work": protocol.SandboxWorkspace, "plugin/sub": protocol.SandboxReadOnly,
		"..": protocol.SandboxReadOnly, "../../../../../../..": protocol.SandboxReadOnly,
	} {
		box, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, workspace))
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "must not see") {
				t.Errorf("part11/1 a workspace in something hidden, %q: %v", workspace, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		mode, why := p.Mode(protocol.SandboxWorkspace, filepath.Join(home, workspace))
		if box.mode != want || mode != want || (why != "") != (want == protocol.SandboxReadOnly) {
			t.Errorf("part11/1 the mode of commands in %q is %q and %q, want %q: %s", workspace, box.mode, mode, want, why)
		}
		if got := p.Default(filepath.Join(home, workspace)); Available() == nil && (got == protocol.SandboxWorkspace) != (want == protocol.SandboxWorkspace) {
			t.Errorf("part11/1 without a setting, the mode in %q is %q", workspace, got)
		}
		if s := box.Confinement.Sandbox; want == protocol.SandboxReadOnly && len(s.Write)+len(s.View.Show) > 0 {
			t.Errorf("part11/1 commands in %q write to %q and see all of %q", workspace, s.Write, s.View.Show)
		}
	}
}

func TestSecretsThatVariablesName(t *testing.T) {
	home, p := user(t, "work/own.json", "keys/cloud.json", "kube/one", "kube/two", "gnupg/private", "cargo/credentials.toml", "cargo/bin/cargo", "conf/gh/hosts.yml", "keys/ssh")
	if err := errors.Join(os.Mkdir(filepath.Join(home, ".ssh"), 0o700), os.WriteFile(filepath.Join(home, ".ssh", "config"), []byte("Host x\n  IdentityFile ~/keys/ssh\n  identityfile=%d/y\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(home, name) }
	p.Named = NamedSecrets([]string{
		"GOOGLE_APPLICATION_CREDENTIALS=" + at("keys/cloud.json"), "KUBECONFIG=" + at("kube/one") + ":" + at("kube/two"), "GNUPGHOME=" + at("gnupg"), "CARGO_HOME=" + at("cargo"),
		"XDG_CONFIG_HOME=" + at("conf"), "NETRC=relative", "AWS_CONFIG_FILE=" + at("work/own.json"), "HISTFILE=" + filepath.Dir(home), "OTHER=" + at("other"),
	}, home)
	box, err := p.For(protocol.SandboxWorkspace, at("work"))
	if err != nil {
		t.Fatal(err)
	}
	hidden := box.Confinement.Sandbox.View.Hide
	for name, want := range map[string]bool{
		"keys/cloud.json": true, "kube/one": true, "kube/two": true, "gnupg": true, "cargo/credentials.toml": true, "cargo": false, "conf/gh": true, "conf": false, "keys/ssh": true,
		"work/own.json": false, "": false, "..": false, "other": false,
	} {
		if slices.Contains(hidden, at(name)) != want {
			t.Errorf("part11/1 %s is hidden: %v, want %v", name, !want, want)
		}
	}
}

func TestMissingVariables(t *testing.T) {
	_, p := user(t, "work/file")
	p.Withheld, p.Env = []string{"NPM_TOKEN", "GH_TOKEN"}, []string{"OTHER_TOKEN=x"}
	box, err := p.For(protocol.SandboxWorkspace, filepath.Join(p.Home, "work"))
	if err != nil {
		t.Fatal(err)
	}
	if got := box.Explain(Ended{Output: "error: set NPM_TOKEN", Code: 1}); got != "[Commands do not get the variable NPM_TOKEN, because it may be a secret. To pass it on, the person adds this to config.toml: sandbox_env = [\"NPM_TOKEN\"]]\n" {
		t.Errorf("part11/2 a command that fails without a variable: %q", got)
	}
	if got := box.Explain(Ended{Output: "NPM_TOKEN is set"}) + box.Explain(Ended{Output: "error", Code: 1}); got != "" {
		t.Errorf("part11/2 a command that does not fail, or names none: %q", got)
	}
	if !slices.Contains(box.Env, "OTHER_TOKEN=x") {
		t.Errorf("part11/2 a variable of sandbox_env is not passed on: %q", box.Env)
	}
}

func TestUnusedTemporaryFiles(t *testing.T) {
	home, p := user(t, "work/file", "work2/file")
	temp := ""
	for _, name := range []string{"work", "work2"} {
		box, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		temp = box.Confinement.Sandbox.View.Temp
	}
	closed := filepath.Join(temp, "cache", "closed")
	if err := errors.Join(os.MkdirAll(filepath.Join(closed, "in"), 0o700), os.Symlink(filepath.Join(home, "work"), filepath.Join(closed, "link")), os.Chmod(closed, 0), os.Mkdir(filepath.Join(p.Scratch, removing+"left"), 0o700)); err != nil {
		t.Fatal(err)
	}
	count := func(now time.Time) int {
		t.Helper()
		if err := errors.Join(p.Retire(now), p.RemoveRetired(t.Context())); err != nil {
			t.Fatal(err)
		}
		n, _ := p.Size(t.Context())
		return n
	}
	if n := count(time.Now().Add(29 * 24 * time.Hour)); n != 2 {
		t.Errorf("part11/1 after 29 days, %d workspaces have temporary files, want 2 and nothing that an interrupted removal left", n)
	}
	if n := count(time.Now().Add(31 * 24 * time.Hour)); n != 0 {
		t.Errorf("part11/1 after 31 days, %d workspaces have temporary files, want 0", n)
	}
	if _, err := os.Lstat(filepath.Join(home, "work", "file")); err != nil {
		t.Errorf("part11/1 a link was followed: %v", err)
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
	home, p := user(t, "work/.git/config", "work/.git/HEAD", "work/.git/modules/sub/config", "work/.git/modules/sub/HEAD", "work/.git/modules/sub/objects/x", "work/.git/modules/sub/refs/x", "work/.git/worktrees/w/commondir", "bare/HEAD", "bare/config", "bare/objects/x", "bare/refs/x")
	for workspace, want := range map[string][]string{
		"work": {".git/config", ".git/hooks", ".git/modules/sub/config", ".git/worktrees/w/commondir"},
		"bare": {"config", "hooks"},
	} {
		box, err := p.For(protocol.SandboxWorkspace, filepath.Join(home, workspace))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want {
			if path := filepath.Join(home, workspace, name); !slices.Contains(box.Confinement.Sandbox.Keep, path) {
				t.Errorf("part11/1 a command can change %s: it cannot change %q", path, box.Confinement.Sandbox.Keep)
			}
		}
	}
}

func TestDefaultMode(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(filepath.Join(work, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	within := protocol.SandboxWorkspace
	if Available() != nil {
		within = ""
	}
	scratch := filepath.Join(home, "scratch")
	for row, c := range map[string]struct {
		places    Places
		workspace string
		want      protocol.SandboxMode
	}{
		"a workspace":                             {Places{Scratch: scratch}, work, within},
		"a workspace above something hidden":      {Places{Scratch: scratch, Hidden: []string{filepath.Join(work, "keys")}}, work, ""},
		"the root directory":                      {Places{Scratch: scratch}, "/", ""},
		"a daemon without a directory for caches": {Places{}, work, ""},
		"a workspace that does not exist":         {Places{Scratch: scratch}, filepath.Join(home, "none"), ""},
	} {
		t.Run("part11/1 the default mode for "+row, func(t *testing.T) {
			if got := c.places.Default(c.workspace); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}
