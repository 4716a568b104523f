//go:build unix

package pluginloader_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/pluginloader"
	"lashd/rpc/protocol"
)

// workspace is a directory with a plugin of its own.
func workspace(t *testing.T) string {
	cwd := t.TempDir()
	put(t, cwd, "version", "one")
	put(t, cwd, "plugin.json", guestOf("guest", "d"))
	return cwd
}

func put(t *testing.T, cwd, name, content string) {
	t.Helper()
	save(t, filepath.Join(cwd, ".agents", "plugins", "g", name), content)
}

// approve approves what is in the directory of a plugin now.
func (w *world) approve(cwd string) protocol.PluginInfo {
	w.t.Helper()
	seen := must(w.Read(w.t.Context(), &protocol.PluginReadParams{Name: "guest", Cwd: cwd})).of(w.t)
	return must(w.Trust(w.t.Context(), &protocol.PluginTrustParams{Name: "guest", Cwd: cwd, Digest: seen.Digest})).of(w.t).Plugin
}

func TestTrust(t *testing.T) {
	t.Run("issue/4-6 reliability/T5 a workspace plugin does not run until a person approves its contents", inertUntilTrusted)
	t.Run("issue/4-6 reliability/T6 after any change a plugin is untrusted, and the approved version keeps running", changeUntrusts)
	t.Run("issue/4-6 an approved plugin runs after a restart, and stops when its approval is revoked", trustOutlives)
	t.Run("issue/4-6 reliability/T6 approval covers exactly the contents that were shown", approvedAsTold)
	t.Run("issue/4-6 a workspace is the same however its path is written, and the path must be absolute", workspacesByPath)
	t.Run("issue/4-6 reliability/T6 a stopped plugin stays stopped, whatever its directory contains", endedWhateverIsThere)
	t.Run("issue/4-6 another workspace with the same bytes needs its own approval", trustIsOfAPlace)
	t.Run("issue/4-6 a workspace plugin does not replace another plugin", noShadow)
	t.Run("issue/4-6 a user's plugin needs no approval", usersNeedNone)
	t.Run("outside/1 approval in a workspace applies to its subdirectories within the git repository", belowWorkspace)
	t.Run("outside/2 plugin/read shows before approval that a plugin changes settings", configuresIsRead)
	t.Run("part13/vscode plugin/read lists exactly the files that the digest covers, of the layout of a workspace", coveredFiles)
}

// A person who reads what a plugin reaches sees that it changes configuration.
func configuresIsRead(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	for name, hooks := range map[string]string{"quiet": `[]`, "configures": `[{"on": "configChanged"}]`} {
		save(t, filepath.Join(cwd, ".agents/plugins", name, "plugin.json"),
			fmt.Sprintf(`{"name": %q, "lashd": {"process": {"command": ["sh"]}, "hooks": %s}}`, name, hooks))
	}
	for name, want := range map[string]bool{"quiet": false, "configures": true} {
		must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: cwd})).of(t)
		if got := must(w.Read(t.Context(), &protocol.PluginReadParams{Name: name, Cwd: cwd})).of(t).Reach; got.Configures != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Of a workspace with a layout of other agents, a review has the files of the layout and those that its commands name, and nothing else.
func coveredFiles(t *testing.T) {
	w, cwd := newWorld(t).start(), t.TempDir()
	save(t, filepath.Join(cwd, ".mcp.json"), `{"mcpServers": {"docs": {"command": "sh", "args": ["tools/serve.sh"]}}}`)
	save(t, filepath.Join(cwd, ".claude", "commands", "tidy.md"), "Tidy up.")
	save(t, filepath.Join(cwd, "tools", "serve.sh"), "echo served")
	for _, other := range []string{".env", ".git/config", "node_modules/a/index.js", "tools/other.sh", ".claude/history.md"} {
		save(t, filepath.Join(cwd, other), "secret")
	}
	must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: cwd})).of(t)
	read := func(files bool) *protocol.PluginReadResult {
		return must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "project", Cwd: cwd, Files: files})).of(t)
	}
	texts := func(files []protocol.PluginReviewFile) map[string]string {
		all := map[string]string{}
		for _, f := range files {
			if filepath.Base(f.Path) != "sh" && f.Size < 100<<10 { // the shell itself is covered too
				all[f.Path] = f.Text
			}
		}
		return all
	}
	server, serve := `{"mcpServers": {"docs": {"command": "sh", "args": ["tools/serve.sh"]}}}`, filepath.Join(cwd, "tools", "serve.sh")
	first := read(true)
	if diff := cmp.Diff(map[string]string{".mcp.json": server, ".claude/commands/tidy.md": "Tidy up.", serve: "echo served"}, texts(first.Files)); diff != "" {
		t.Error(diff)
	}
	if r := read(false); r.Files != nil || r.Digest != first.Digest || first.Before != nil {
		t.Errorf("not asked for files: %+v; before approval: %+v", r.Files, first.Before)
	}
	must(w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "project", Cwd: cwd, Digest: first.Digest})).of(t)
	save(t, filepath.Join(cwd, ".claude", "commands", "tidy.md"), "Delete all.")
	again := read(true)
	if before, now := texts(again.Before), texts(again.Files); before[".claude/commands/tidy.md"] != "Tidy up." || now[".claude/commands/tidy.md"] != "Delete all." || before[serve] != "" {
		t.Errorf("before %+v, now %+v", before, now)
	}
}

// A guard of a repository is one of its subdirectories, too.
func belowWorkspace(t *testing.T) {
	w, repo := newWorld(t).start(), workspace(t)
	save(t, filepath.Join(repo, ".git", "HEAD"), "ref: refs/heads/main")
	below, module, own := filepath.Join(repo, "a", "b"), filepath.Join(repo, "module"), filepath.Join(repo, "own")
	save(t, filepath.Join(below, "file"), "")
	save(t, filepath.Join(module, ".git"), "gitdir: ../.git/modules/module")
	if err := os.MkdirAll(filepath.Join(own, ".agents", "plugins"), 0o755); err != nil {
		t.Fatal(err)
	}
	ids := map[string]protocol.SessionID{}
	for _, dir := range []string{repo, below, module, own} {
		ids[dir] = w.session(dir)
		if got := w.call(ids[dir], "version", `{}`); !strings.Contains(got, "no such tool") {
			t.Errorf("in %s, before it is approved: %q", dir, got)
		}
	}
	w.approve(below)
	for dir, want := range map[string]bool{repo: true, below: true, module: false, own: false} {
		must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: dir})).of(t)
		if got := w.call(ids[dir], "version", `{}`); strings.Contains(got, "no such tool") == want {
			t.Errorf("in %s, once it is approved: %q", dir, got)
		}
	}
	w.restart()
	if got := w.call(w.session(below), "version", `{}`); strings.Contains(got, "no such tool") {
		t.Errorf("after a restart: %q", got)
	}
}

func inertUntilTrusted(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	id := w.session(cwd)
	if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
		t.Errorf("it says %q", got)
	}
	info := w.status(cwd, "guest", protocol.PluginUntrusted)
	seen := must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "guest", Cwd: cwd})).of(t)
	if info.Found == "" || info.Digest != "" || len(seen.Reach.Executables) != 1 || len(seen.Contributes) != 6 {
		t.Errorf("%+v, %+v", info, seen)
	}
	_, err := w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "guest", Cwd: cwd, Digest: "other"})
	if e, ok := errors.AsType[*pluginloader.ContentError](err); !ok || e.Found != info.Found {
		t.Errorf("another digest is approved: %v", err)
	}
	if now := w.approve(cwd); now.Status != protocol.PluginLoaded || now.Digest != info.Found {
		t.Errorf("approved: %+v", now)
	}
	if got := w.call(id, "version", `{}`); got != "one" {
		t.Errorf("approved, it says %q", got)
	}
	if got := w.call(w.session(""), "version", `{}`); !strings.Contains(got, "no such tool") {
		t.Errorf("in another workspace it says %q", got)
	}
}

func approvedAsTold(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	w.status(cwd, "guest", protocol.PluginUntrusted)
	put(t, cwd, "plugin.json", strings.Replace(guestOf("guest", "d"), `"d"`, `"something else"`, 1))
	told := must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "guest", Cwd: cwd})).of(t)
	put(t, cwd, "plugin.json", guestOf("guest", "d"))
	_, err := w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "guest", Cwd: cwd, Digest: told.Digest})
	if _, ok := errors.AsType[*pluginloader.ContentError](err); !ok {
		t.Errorf("contents that no review showed are approved: %v", err)
	}
	if again := must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "guest", Cwd: cwd})).of(t); again.Digest == "" || again.Digest == told.Digest {
		t.Errorf("told %q, then %q", told.Digest, again.Digest)
	}
	put(t, cwd, "plugin.json", "{")
	_, err = w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "guest", Cwd: cwd, Digest: told.Digest})
	if err == nil || !strings.HasPrefix(err.Error(), "the plugin cannot be trusted because its files cannot be loaded: plugin.json:1:2: ") {
		t.Errorf("what cannot be read: %v", err)
	}
	copies, err := os.ReadDir(filepath.Join(w.home, "plugins", "copies"))
	if err != nil || len(copies) != 0 {
		t.Errorf("reading leaves %v, %v", copies, err)
	}
}

func endedWhateverIsThere(t *testing.T) {
	untrust := func(w *world, cwd string) (*protocol.PluginResult, error) {
		return w.Untrust(t.Context(), &protocol.PluginUntrustParams{Name: "guest", Cwd: cwd})
	}
	disable := func(w *world, cwd string) (*protocol.PluginResult, error) {
		return w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest", Cwd: cwd})
	}
	saves := func(name, content string) func(string) error {
		return func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		}
	}
	unlisted := func(dir string) error {
		return errors.Join(os.Rename(filepath.Dir(dir), filepath.Dir(dir)+"-gone"), os.WriteFile(filepath.Dir(dir), nil, 0o644))
	}
	for _, c := range []struct {
		what          string
		do            func(*world, string) (*protocol.PluginResult, error)
		change        func(dir string) error
		before, after protocol.PluginStatus
	}{
		{"untrusted, it cannot be read", untrust, saves("plugin.json", "{"), protocol.PluginDegraded, protocol.PluginFailed},
		{"untrusted, it is too deep", untrust, saves(strings.Repeat("d/", 40)+"f", ""), protocol.PluginDegraded, protocol.PluginFailed},
		{"disabled, it cannot be read", disable, saves("plugin.json", "{"), protocol.PluginDegraded, protocol.PluginDisabled},
		{"disabled, it is not what was approved", disable, saves("version", "two"), protocol.PluginModified, protocol.PluginDisabled},
		{"untrusted and unreadable", untrust, unlisted, protocol.PluginDegraded, protocol.PluginFailed},
		{"disabled and unreadable", disable, unlisted, protocol.PluginDegraded, protocol.PluginDisabled},
	} {
		t.Run(c.what, func(t *testing.T) {
			w, cwd := newWorld(t).start(), workspace(t)
			w.approve(cwd)
			if err := c.change(filepath.Join(cwd, ".agents", "plugins", "g")); err != nil {
				t.Fatal(err)
			}
			w.status(cwd, "guest", c.before)
			if now := must(c.do(w, cwd)).of(t).Plugin; now.Digest != "" || now.Process != nil {
				t.Errorf("it is %+v", now)
			}
			w.status(cwd, "guest", c.after)
			if got := w.call(w.session(cwd), "version", `{}`); !strings.Contains(got, "no such tool") {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func workspacesByPath(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	w.approve(cwd + "//")
	if now := w.info(cwd, "guest"); now.Status != protocol.PluginLoaded {
		t.Errorf("approved by another path: %+v", now)
	}
	for _, err := range []error{
		must(w.List(t.Context(), &protocol.PluginListParams{Cwd: "."})).err,
		must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "guest", Cwd: "a/b"})).err,
		must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: "."})).err,
	} {
		if !errors.Is(err, pluginloader.ErrCwd) {
			t.Errorf("error %v", err)
		}
	}
}

func changeUntrusts(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	id := w.session(cwd)
	w.approve(cwd)
	w.call(id, "version", `{}`)
	put(t, cwd, "version", "two")
	now := w.status(cwd, "guest", protocol.PluginModified)
	if now.Found == "" || now.Found == now.Digest {
		t.Errorf("modified: %+v", now)
	}
	if got := w.call(id, "version", `{}`) + w.call(id, "version", `{"x":"forbidden"}`); got != "oneforbidden" {
		t.Errorf("it says %q", got)
	}
	put(t, cwd, "version", "one")
	w.status(cwd, "guest", protocol.PluginLoaded)
	put(t, cwd, "version", "two")
	w.status(cwd, "guest", protocol.PluginModified)
	w.approve(cwd)
	if got := w.call(id, "version", `{}`); got != "two" {
		t.Errorf("approved, it says %q", got)
	}
}

func trustOutlives(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	id := w.session(cwd)
	w.approve(cwd)
	w.stop()
	put(t, cwd, "version", "two")
	w.start()
	if got := w.call(id, "version", `{}`); got != "one" {
		t.Errorf("after a restart it says %q", got)
	}
	w.status(cwd, "guest", protocol.PluginModified)
	must(w.Untrust(t.Context(), &protocol.PluginUntrustParams{Name: "guest", Cwd: cwd})).of(t)
	for range 2 {
		if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
			t.Errorf("untrusted, it says %q", got)
		}
		w.status(cwd, "guest", protocol.PluginUntrusted)
		w.restart()
	}
}

func trustIsOfAPlace(t *testing.T) {
	w, cwd, other := newWorld(t).start(), workspace(t), workspace(t)
	w.session(cwd)
	w.approve(cwd)
	id := w.session(other)
	w.status(other, "guest", protocol.PluginUntrusted)
	if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
		t.Errorf("it says %q", got)
	}
}

func noShadow(t *testing.T) {
	w, cwd := newWorld(t), workspace(t)
	w.write("mine/version", "mine")
	w.write("mine/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session(cwd)
	all := must(w.List(t.Context(), &protocol.PluginListParams{Cwd: cwd})).of(t)
	var theirs protocol.PluginInfo
	for _, p := range all.Data {
		if p.Scope == protocol.ScopeWorkspace {
			theirs = p
		}
	}
	// The user's own one is found by that name.
	if _, err := w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "guest", Cwd: cwd, Digest: theirs.Found}); !errors.Is(err, pluginloader.ErrTrusted) {
		t.Errorf("approving it: %v", err)
	}
	if got := w.call(id, "version", `{}`); got != "mine" {
		t.Errorf("it says %q", got)
	}
}

func usersNeedNone(t *testing.T) {
	w := newWorld(t)
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	if _, err := w.Untrust(t.Context(), &protocol.PluginUntrustParams{Name: "guest"}); !errors.Is(err, pluginloader.ErrTrusted) {
		t.Errorf("untrusted: %v", err)
	}
	if err := os.Symlink(w.user, filepath.Join(t.TempDir(), "plugins")); err != nil {
		t.Fatal(err)
	}
}
