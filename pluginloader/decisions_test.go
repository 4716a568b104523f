//go:build unix

package pluginloader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// toolNamed is a plugin that only has a tool of a name.
func toolNamed(name, tool string) string {
	return manifest(name, `,"tools":[{"name":"`+tool+`","description":"d"}]`)
}

func TestDecisionsHold(t *testing.T) {
	t.Run("issue/4-5 a plugin that is disabled while its directory is broken does not run", offWhileBroken)
	t.Run("issue/4-6 a plugin whose trust is revoked while its directory is broken does not run", untrustedWhileBroken)
	t.Run("issue/4-5 a plugin can be disabled while its root cannot be read", offWhileUnlisted)
	t.Run("issue/4-6 a workspace is the same however it is spelled", spellings)
}

func offWhileBroken(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session("")
	w.write("g/plugin.json", "{")
	w.status("", "guest", protocol.PluginDegraded)
	if now := must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest"})).of(t).Plugin; now.Digest != "" {
		t.Errorf("switched off: %+v", now)
	}
	if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
		t.Errorf("it says %q", got)
	}
}

func untrustedWhileBroken(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	id := w.session(cwd)
	w.approve(cwd)
	if got := w.call(id, "version", `{}`); got != "one" {
		t.Errorf("it says %q", got)
	}
	put(t, cwd, "plugin.json", "{")
	w.status(cwd, "guest", protocol.PluginDegraded)
	if now := must(w.Untrust(t.Context(), &protocol.PluginUntrustParams{Name: "guest", Cwd: cwd})).of(t).Plugin; now.Digest != "" {
		t.Errorf("untrusted: %+v", now)
	}
	if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
		t.Errorf("it says %q", got)
	}
}

func offWhileUnlisted(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session("")
	if err := os.Rename(w.user, w.user+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.user, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	must(w.Reload(t.Context(), &protocol.PluginReloadParams{})).of(t)
	if got := w.call(id, "version", `{}`) + w.call(id, "version", `{"x":"forbidden"}`); got != "oneforbidden" {
		t.Errorf("unlisted, it says %q", got)
	}
	w.restart()
	if got := w.call(id, "version", `{}`) + w.call(id, "version", `{"x":"forbidden"}`); got != "oneforbidden" {
		t.Errorf("unlisted, after a restart it says %q", got)
	}
	must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest"})).of(t)
	if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
		t.Errorf("switched off, it says %q", got)
	}
}

func spellings(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(cwd, link); err != nil {
		t.Fatal(err)
	}
	w.session(cwd)
	w.approve(cwd)
	for _, other := range []string{link, cwd + "/", cwd + "/.", cwd + "/../" + filepath.Base(cwd)} {
		id := w.session(other)
		if got := w.call(id, "version", `{}`); got != "one" {
			t.Errorf("as %s it says %q", other, got)
		}
		must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest", Cwd: cwd})).of(t)
		if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
			t.Errorf("switched off, as %s it says %q", other, got)
		}
		must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest", Cwd: other, Enabled: true})).of(t)
	}
}

func TestComeAndGo(t *testing.T) {
	t.Run("issue/4-5 a plugin loads once the plugin that it conflicts with is removed", wayIsFree)
	t.Run("issue/4-6 a new plugin of the user suspends a workspace plugin of the same name until it is removed", givesWay)
	t.Run("issue/4-5 two plugins can swap their names", exchange)
	t.Run("issue/4-5 a plugin keeps denying while its directory is replaced", neverLapses)
	t.Run("issue/4-5 the plugins of a root return with the root", rootReturns)
}

func wayIsFree(t *testing.T) {
	w := newWorld(t)
	w.write("a/plugin.json", toolNamed("a", "one"))
	w.write("b/plugin.json", toolNamed("b", "one"))
	w.start()
	w.status("", "a", protocol.PluginLoaded)
	w.status("", "b", protocol.PluginFailed)
	w.write("a/plugin.json", toolNamed("a", "two"))
	if p := w.status("", "b", protocol.PluginLoaded); len(p.Problems) > 0 || p.Digest == "" {
		t.Errorf("loaded: %+v", p)
	}
}

func givesWay(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	id := w.session(cwd)
	w.approve(cwd)
	for range 3 {
		if got := w.call(id, "version", `{}`); got != "one" {
			t.Errorf("it says %q", got)
		}
		w.write("mine/version", "mine")
		w.write("mine/plugin.json", guestOf("mine", "d"))
		w.status(cwd, "mine", protocol.PluginLoaded)
		w.status(cwd, "guest", protocol.PluginFailed)
		if got := w.call(id, "version", `{}`); got != "mine" {
			t.Errorf("with the user's it says %q", got)
		}
		if err := os.RemoveAll(filepath.Join(w.user, "mine")); err != nil {
			t.Fatal(err)
		}
		w.status(cwd, "guest", protocol.PluginLoaded)
	}
}

func exchange(t *testing.T) {
	w := newWorld(t)
	w.write("a/plugin.json", toolNamed("a", "a"))
	w.write("b/plugin.json", toolNamed("b", "b"))
	w.start()
	w.status("", "a", protocol.PluginLoaded)
	w.status("", "b", protocol.PluginLoaded)
	w.write("a/plugin.json", toolNamed("b", "b"))
	time.Sleep(time.Second) // so that one is found before the other
	w.write("b/plugin.json", toolNamed("a", "a"))
	w.until("they are exchanged", func() bool {
		return strings.HasSuffix(w.info("", "a").Dir, "/b") && strings.HasSuffix(w.info("", "b").Dir, "/a") &&
			w.info("", "a").Status == protocol.PluginLoaded && w.info("", "b").Status == protocol.PluginLoaded
	})
}

// neverLapses takes a directory away and puts another one in its place, slowly.
func neverLapses(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id, dir := w.session(""), filepath.Join(w.user, "g")
	for range 3 {
		if err := os.Rename(dir, filepath.Join(w.user, ".away")); err != nil {
			t.Fatal(err)
		}
		for away := time.Now(); time.Since(away) < 400*time.Millisecond; {
			if got := w.call(id, "version", `{"x":"forbidden"}`); got != "forbidden" && time.Since(away) < time.Second { // later it may be gone
				t.Fatalf("while it is away it says %q", got)
			}
		}
		if err := os.Rename(filepath.Join(w.user, ".away"), dir); err != nil {
			t.Fatal(err)
		}
		must(w.Reload(t.Context(), &protocol.PluginReloadParams{})).of(t)
		w.status("", "guest", protocol.PluginLoaded)
	}
}

func rootReturns(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session("")
	for range 3 {
		if err := os.Rename(w.user, w.user+".away"); err != nil {
			t.Fatal(err)
		}
		w.until("it is gone", func() bool { return w.info("", "guest").Name == "" })
		if err := os.Rename(w.user+".away", w.user); err != nil {
			t.Fatal(err)
		}
		w.status("", "guest", protocol.PluginLoaded)
		if got := w.call(id, "version", `{}`); got != "one" {
			t.Errorf("it says %q", got)
		}
	}
}
