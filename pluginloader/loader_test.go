//go:build unix

package pluginloader_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lashd/engine/plugin"
	"lashd/pluginloader"
	"lashd/rpc/protocol"
)

// guestOf is the guest as it is declared everywhere here.
func guestOf(name, description string) string {
	return manifest(name, `,"hooks":["beforeToolCall"],"state":"1","tools":[`+
		`{"name":"version","description":"`+description+`"},{"name":"pid","description":"p"},{"name":"count","description":"c"}]`)
}

func TestLoader(t *testing.T) {
	t.Run("issue/4-1 a directory with a manifest is a plugin whose tool can be called", func(t *testing.T) {
		w := newWorld(t)
		w.write("g/version", "one")
		w.write("g/plugin.json", guestOf("guest", "d"))
		w.start()
		w.status("", "guest", protocol.PluginLoaded)
		id := w.session("")
		if got := w.call(id, "version", `{}`) + w.call(id, "version", `{"x":"forbidden"}`); got != "oneforbidden" {
			t.Errorf("it says %q", got)
		}
	})
	t.Run("issue/4-5 no session opens before the first scan", func(t *testing.T) {
		w := newWorld(t)
		w.write("g/version", "one")
		w.write("g/plugin.json", guestOf("guest", "d"))
		w.start()
		if got := w.call(w.session(""), "version", `{"x":"forbidden"}`); got != "forbidden" {
			t.Errorf("it says %q", got)
		}
	})
	t.Run("issue/4-4 a new directory is loaded, and a removed one is unloaded with its tools and process", comesAndGoes)
	t.Run("issue/4-5 an edit takes effect and keeps the plugin's state", editKeeps)
	t.Run("issue/4-5 an unchanged plugin keeps its process", unchangedStays)
	t.Run("issue/4-5 after a broken edit, the last version keeps running and the reason is reported", brokenStays)
	t.Run("issue/4-5 the last version runs after a restart, whatever the directory contains", restartKeeps)
	t.Run("issue/4-5 of two conflicting plugins, the later one is not loaded until the other is removed", notTogether)
	t.Run("issue/4-5 a disabled plugin does not run, also after a restart", switchedOff)
	t.Run("issue/4-5 a dry run reports what would change and changes nothing", dryRun)
	t.Run("issue/4-5 a user's plugin replaces a built-in one only if the configuration says so", takesItsPlace)
	t.Run("issue/4-9 known plugins without users start nothing", lazyStartNothing)
}

func comesAndGoes(t *testing.T) {
	w := newWorld(t).start()
	id := w.session("")
	if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
		t.Errorf("before, it says %q", got)
	}
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.status("", "guest", protocol.PluginLoaded)
	pid := w.call(id, "pid", `{}`)
	if _, err := os.Stat("/proc/" + pid); err != nil {
		t.Errorf("its process: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(w.user, "g")); err != nil {
		t.Fatal(err)
	}
	w.until("it is gone", func() bool { return w.info("", "guest").Name == "" })
	if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
		t.Errorf("after, it says %q", got)
	}
	w.until("its process is gone", func() bool { _, err := os.Stat("/proc/" + pid); return os.IsNotExist(err) })
}

func editKeeps(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session("")
	w.call(id, "count", `{}`)
	was := w.info("", "guest")
	w.write("g/version", "two")
	w.until("it is another one", func() bool { return w.info("", "guest").Digest != was.Digest })
	if got := w.call(id, "version", `{}`) + w.call(id, "count", `{}`); got != "two2" {
		t.Errorf("then it says %q", got)
	}
}

func unchangedStays(t *testing.T) {
	w := newWorld(t)
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session("")
	pid := w.call(id, "pid", `{}`)
	w.write("other/plugin.json", `{"name":"other","lashd":{"prompt":[{"slot":"guidance","content":"x"}]}}`)
	w.status("", "other", protocol.PluginLoaded)
	if got := w.call(id, "pid", `{}`); got != pid || pid == "" {
		t.Errorf("the process was %s and is %s", pid, got)
	}
}

func brokenStays(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	var told atomic.Pointer[protocol.PluginInfo]
	w.news = func(e protocol.ServerEvent) { told.Store(e.Plugin) }
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session("")
	w.write("g/plugin.json", "{\n\"name\": 3")
	bad := w.status("", "guest", protocol.PluginDegraded)
	if p := bad.Problems; len(p) == 0 || p[0].File != "plugin.json" || p[0].Line != 2 {
		t.Errorf("problems: %+v", bad.Problems)
	}
	w.until("it is reported", func() bool { e := told.Load(); return e != nil && e.Status == protocol.PluginDegraded })
	if got := w.call(id, "version", `{}`) + w.call(id, "version", `{"x":"forbidden"}`); got != "oneforbidden" {
		t.Errorf("it says %q", got)
	}
	w.write("g/plugin.json", guestOf("guest", "other"))
	w.status("", "guest", protocol.PluginLoaded)
	w.write("g/version", "broken")
	bad = w.status("", "guest", protocol.PluginDegraded)
	if p := bad.Problems; len(p) == 0 || !strings.Contains(p[0].Message, "exit status 3") {
		t.Errorf("problems: %+v", bad.Problems)
	}
	if got := w.call(id, "version", `{}`); got != "one" {
		t.Errorf("it says %q", got)
	}
	logs := must(w.Logs(t.Context(), &protocol.PluginLogsParams{Name: "guest"})).of(t)
	if len(logs.Data) == 0 {
		t.Error("its log is empty")
	}
}

func restartKeeps(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	w.stop()
	w.write("g/plugin.json", `{"name":`)
	w.start()
	id := w.session("")
	if got := w.call(id, "version", `{}`) + w.call(id, "version", `{"x":"forbidden"}`); got != "oneforbidden" {
		t.Errorf("it says %q", got)
	}
	w.status("", "guest", protocol.PluginDegraded)
	w.restart()
	if got := w.call(id, "version", `{}`); got != "one" {
		t.Errorf("after another restart it says %q", got)
	}
}

func notTogether(t *testing.T) {
	w := newWorld(t)
	w.write("a/plugin.json", guestOf("a", "d"))
	w.write("b/plugin.json", guestOf("b", "d"))
	w.start()
	w.status("", "a", protocol.PluginLoaded)
	if p := w.status("", "b", protocol.PluginFailed).Problems; len(p) == 0 || !strings.Contains(p[0].Message, `"version"`) || !strings.Contains(p[0].Message, "plugin a ") {
		t.Errorf("problems: %+v", p)
	}
	w.write("b/plugin.json", `{"name":"a"}`)
	w.until("it has the name of the other one", func() bool {
		for _, p := range must(w.List(t.Context(), &protocol.PluginListParams{})).of(t).Data {
			if strings.HasSuffix(p.Dir, "/b") && p.Status == protocol.PluginFailed && strings.Contains(p.Problems[0].Message, `"a"`) {
				return true
			}
		}
		return false
	})
	w.write("a/plugin.json", guestOf("c", "d"))
	w.status("", "c", protocol.PluginLoaded)
	if p := w.status("", "a", protocol.PluginLoaded).Problems; len(p) > 0 {
		t.Errorf("its name is free, and it has problems: %+v", p)
	}
	w.write("b/plugin.json", guestOf("b", "d"))
	if p := w.status("", "b", protocol.PluginDegraded).Problems; len(p) != 1 {
		t.Errorf("problems: %+v", p)
	}
	if err := os.RemoveAll(filepath.Join(w.user, "a")); err != nil {
		t.Fatal(err)
	}
	w.status("", "b", protocol.PluginLoaded)
	cwd := t.TempDir()
	save(t, filepath.Join(cwd, ".agents/plugins/d/plugin.json"), guestOf("d", "d"))
	found := w.status(cwd, "d", protocol.PluginUntrusted).Found
	must(w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "d", Cwd: cwd, Digest: found})).of(t)
	if p := w.status(cwd, "d", protocol.PluginFailed).Problems; len(p) != 1 {
		t.Errorf("problems: %+v", p)
	}
	if err := os.RemoveAll(filepath.Join(w.user, "b")); err != nil {
		t.Fatal(err)
	}
	if p := w.status(cwd, "d", protocol.PluginLoaded).Problems; len(p) > 0 {
		t.Errorf("its tools are its own, and it has problems: %+v", p)
	}
}

func switchedOff(t *testing.T) {
	w := newWorld(t)
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest"})).of(t)
	id := w.session("")
	for range 2 {
		w.status("", "guest", protocol.PluginDisabled)
		if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
			t.Errorf("it says %q", got)
		}
		w.restart()
	}
	w.status("", "guest", protocol.PluginDisabled)
	must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest", Enabled: true})).of(t)
	w.status("", "guest", protocol.PluginLoaded)
	if _, err := w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "nobody"}); !errors.Is(err, pluginloader.ErrNoPlugin) {
		t.Errorf("an unknown plugin is disabled: %v", err)
	}
}

func dryRun(t *testing.T) {
	w := newWorld(t)
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	before := w.info("", "guest")
	plan := func(dry bool) *protocol.PluginReloadResult {
		t.Helper()
		return must(w.Reload(t.Context(), &protocol.PluginReloadParams{DryRun: dry})).of(t)
	}
	if r := plan(true); len(r.Data) != 1 || r.Data[0].Change != protocol.PluginUnchanged || r.Prefix {
		t.Errorf("with nothing to do: %+v", r)
	}
	version := 0
	w.until("a dry run before the watcher reports another file", func() bool {
		version++
		w.write("g/version", fmt.Sprint(version))
		r := plan(true)
		return r.Data[0].Change == protocol.PluginChanged && len(r.Data[0].Added)+len(r.Data[0].Removed) == 0 && !r.Prefix
	})
	w.stop() // so that the watcher is not faster
	w.write("g/plugin.json", manifest("guest", `,"hooks":["beforeToolCall","prompt"],"state":"1","tools":[{"name":"version","description":"d"},{"name":"new","description":"n"}]`))
	w.write("h/plugin.json", `{"name":"h","lashd":{"prompt":[{"slot":"guidance","content":"x"}]}}`)
	w.start()
	r := plan(false)
	now := w.info("", "guest")
	if r.Generation == 0 || now.Digest == before.Digest || w.info("", "h").Status != protocol.PluginLoaded {
		t.Errorf("reloaded: %+v, %+v", r, now)
	}
}

func lazyStartNothing(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.write(name+"/plugin.json", manifest(name, `,"tools":[{"name":"`+name+`","description":"d"}]`))
	}
	w.start()
	for _, name := range []string{"a", "b", "c"} {
		w.status("", name, protocol.PluginLoaded)
	}
	w.restart()
	w.session("")
	must(w.Reload(t.Context(), &protocol.PluginReloadParams{})).of(t)
	for _, name := range []string{"a", "b", "c"} {
		if p := w.status("", name, protocol.PluginLoaded); p.Process == nil || p.Process.State != "idle" {
			t.Errorf("%s: %+v", name, p.Process)
		}
	}
}

func takesItsPlace(t *testing.T) {
	w := newWorld(t)
	w.builtin = []plugin.Factory{plugin.Static("plan", func(r *plugin.Registrar) error {
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Content: "built in"})
		return nil
	})}
	w.write("mine/version", "mine")
	w.write("mine/plugin.json", guestOf("plan", "d"))
	w.start()
	failed := w.status("", "plan", protocol.PluginFailed)
	if p := failed.Problems; len(p) != 1 || !strings.Contains(p[0].Message, `replace = ["plan"]`) {
		t.Errorf("problems: %+v", p)
	}
	w.replace = []string{"plan"}
	w.restart()
	w.status("", "plan", protocol.PluginLoaded)
	if got := w.call(w.session(""), "version", `{}`); got != "mine" {
		t.Errorf("it says %q", got)
	}
	cwd := t.TempDir()
	put(t, cwd, "plugin.json", guestOf("plan", "d"))
	w.stop()
	if err := os.RemoveAll(filepath.Join(w.user, "mine")); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.session(cwd)
	theirs := func() (found protocol.PluginInfo) {
		for _, p := range must(w.List(t.Context(), &protocol.PluginListParams{Cwd: cwd})).of(t).Data {
			if p.Scope == protocol.ScopeWorkspace {
				found = p
			}
		}
		return found
	}
	must(w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "plan", Cwd: cwd, Digest: theirs().Found})).of(t)
	if got := theirs(); got.Status != protocol.PluginFailed {
		t.Errorf("one of a workspace is %+v", got)
	}
}

func TestNewsOfQuarantine(t *testing.T) {
	t.Run("outside/26 a reload reports that a quarantined process is retried, and its start that it works", func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		var states []string
		w.news = func(e protocol.ServerEvent) {
			mu.Lock()
			defer mu.Unlock()
			if e.Plugin.Process != nil {
				states = append(states, e.Plugin.Process.State)
			}
		}
		told := func(state string) {
			t.Helper()
			w.until("the process is reported as "+state, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(states) > 0 && states[len(states)-1] == state
			})
		}
		w.write("p/plugin.json", manifest("p", `,"tools":[{"name":"pid","description":"p"},{"name":"die","description":"d"}]`))
		w.start()
		w.status("", "p", protocol.PluginLoaded)
		id := w.session("")
		for w.call(id, "die", "{}") != "plugin_quarantined" {
		}
		told("quarantined")
		must(w.Reload(t.Context(), &protocol.PluginReloadParams{})).of(t)
		told("resumed")
		if got := w.call(id, "pid", "{}"); strings.HasPrefix(got, "plugin_") {
			t.Errorf("the call returned %s", got)
		}
		told("running")
	})
}
