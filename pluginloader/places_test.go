//go:build unix

package pluginloader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestPlaces(t *testing.T) {
	t.Run("issue/4-6 reliability/T5 a link to what was approved in another workspace is not approved", linkToTrusted)
	t.Run("issue/4-6 reliability/T5 the home directory and parents of plugins are ordinary workspaces", oddWorkspaces)
	t.Run("issue/4-4 beyond the limit, running plugins stay", tooMany)
}

func linkToTrusted(t *testing.T) {
	w, cwd, other := newWorld(t).start(), workspace(t), t.TempDir()
	w.session(cwd)
	w.approve(cwd)
	for _, link := range []string{".agents", ".agents/plugins", ".agents/plugins/g"} {
		path := filepath.Join(other, link)
		for _, err := range []error{os.RemoveAll(filepath.Join(other, ".agents")), os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(filepath.Join(cwd, link), path)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		id := w.session(other)
		must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: other})).of(t)
		if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
			t.Errorf("by the link %s it says %q", link, got)
		}
		if info := w.info(other, "guest"); info.Name != "" {
			t.Errorf("by the link %s there is %+v", link, info)
		}
	}
	check(t, os.RemoveAll(filepath.Join(other, ".agents")), os.Symlink("agents", filepath.Join(other, ".agents")))
	check(t, os.CopyFS(filepath.Join(other, "agents"), os.DirFS(filepath.Join(cwd, ".agents"))))
	w.session(other)
	must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: other})).of(t)
	w.status(other, "guest", protocol.PluginUntrusted)
	w.approve(other)
	if got := w.call(w.session(other), "version", `{}`); got != "one" {
		t.Errorf("approved there, too, it says %q", got)
	}
	must(w.Untrust(t.Context(), &protocol.PluginUntrustParams{Name: "guest", Cwd: other})).of(t)
	if got := w.call(w.session(cwd), "version", `{}`); got != "one" {
		t.Errorf("where it was approved first it says %q", got)
	}
}

func oddWorkspaces(t *testing.T) {
	w := newWorld(t)
	w.user = filepath.Join(t.TempDir(), ".agents", "plugins")
	home := filepath.Dir(filepath.Dir(w.user))
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	for _, cwd := range []string{home, w.user, filepath.Join(w.user, "g")} {
		if got := w.call(w.session(cwd), "version", `{}`); got != "one" {
			t.Errorf("in %s it says %q", cwd, got)
		}
		all := must(w.List(t.Context(), &protocol.PluginListParams{Cwd: cwd})).of(t).Data
		if n := len(all); n != 1 {
			t.Errorf("in %s there are %d plugins: %+v", cwd, n, all)
		}
	}
}

func tooMany(t *testing.T) {
	w := newWorld(t)
	w.write("z/version", "one")
	w.write("z/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session("")
	for n := range 300 {
		name := fmt.Sprintf("p%03d", n)
		w.write(name+"/plugin.json", `{"name":"`+name+`","lashd":{"prompt":[{"slot":"guidance","content":"`+name+`"}]}}`)
	}
	must(w.Reload(t.Context(), &protocol.PluginReloadParams{})).of(t)
	w.until("as many are loaded as can be", func() bool { return len(must(w.List(t.Context(), &protocol.PluginListParams{})).of(t).Data) == 256 })
	if got := w.call(id, "version", `{"x":"forbidden"}`); got != "forbidden" {
		t.Errorf("it says %q", got)
	}
}
