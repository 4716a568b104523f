//go:build unix

package pluginloader_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

func alive(pid string) bool {
	n, _ := strconv.Atoi(pid)
	return n > 0 && syscall.Kill(n, 0) == nil
}

func TestHangs(t *testing.T) {
	t.Run("reliability/P14 a plugin that hangs in its handshake does not delay others", holdsUpNobody)
	t.Run("issue/4-5 sessions work while plugins are loaded", startsLate)
	t.Run("reliability/P25 the daemon stops at once while a plugin hangs in its handshake", stopsWhileHanging)
}

// hanging is a plugin with a tool of its name, which may take a minute to start.
func hanging(name string) string {
	return strings.Replace(toolNamed(name, name), `"env":{`, `"deadlines":{"startMs":60000},"env":{`, 1)
}

// quick fails the test if something waits for a plugin that hangs.
func quick(t *testing.T, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if d := time.Since(began); d > 30*time.Second {
		t.Errorf("%s took %v", what, d)
	} else {
		t.Logf("%s took %v", what, d)
	}
}

func holdsUpNobody(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	cwd := workspace(t)
	put(t, cwd, "plugin.json", toolNamed("theirs", "theirs"))
	w.write("hangs/version", "hangs")
	w.write("hangs/plugin.json", hanging("hangs"))
	time.Sleep(500 * time.Millisecond)
	var id, other protocol.SessionID
	quick(t, "a session", func() { id = w.session("") })
	quick(t, "a call", func() { w.call(id, "version", `{}`) })
	quick(t, "a session in a workspace", func() { other = w.session(cwd) })
	quick(t, "a list there", func() { w.info(cwd, "theirs") })
	quick(t, "an approval", func() {
		seen := must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "theirs", Cwd: cwd})).of(t)
		must(w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "theirs", Cwd: cwd, Digest: seen.Plugin.Found})).of(t)
	})
	quick(t, "a call there", func() {
		if got := w.call(other, "theirs", `{}`); got != "one" {
			t.Errorf("it says %q", got)
		}
	})
	quick(t, "switching off", func() { must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest"})).of(t) })
	quick(t, "a call after that", func() {
		if got := w.call(id, "version", `{}`); !strings.Contains(got, "no such tool") {
			t.Errorf("it says %q", got)
		}
	})
	quick(t, "stop", w.stop)
}

func stopsWhileHanging(t *testing.T) {
	w := newWorld(t)
	w.write("hangs/version", "hangs")
	w.write("hangs/plugin.json", hanging("hangs"))
	w.start()
	time.Sleep(500 * time.Millisecond)
	quick(t, "stop", w.stop)
}

func TestIdleSessions(t *testing.T) {
	t.Run("issue/4-6 a plugin without approval ends even if an idle session uses it", idleEnds)
	t.Run("issue/4-5 a session that cannot switch plugins does not continue with a disabled one", stuckSession)
}

func idleEnds(t *testing.T) {
	w := newWorld(t)
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	id := w.session("")
	pid := w.call(id, "pid", `{}`)
	must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest"})).of(t)
	w.until("its process is gone", func() bool { return !alive(pid) })
}

// stuckSession has options that a plugin does not take any more.
func stuckSession(t *testing.T) {
	w, options := newWorld(t), func(name string) string {
		return manifest("o", `,"config":{"type":"object","additionalProperties":false,"properties":{"`+name+`":{}}}`)
	}
	w.write("g/version", "one")
	w.write("g/plugin.json", guestOf("guest", "d"))
	w.write("o/plugin.json", options("limit"))
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	w.status("", "o", protocol.PluginLoaded)
	id := must(w.Sessions.New(t.Context(), &protocol.SessionNewParams{
		Cwd: t.TempDir(), Options: protocol.PluginOptions{"o": []byte(`{"limit":3}`)},
	})).of(t).SessionID
	pid := w.call(id, "pid", `{}`)
	was := w.info("", "o")
	w.write("o/plugin.json", options("other"))
	w.until("it is another one", func() bool { return w.info("", "o").Digest != was.Digest })
	if got := w.call(id, "version", `{}`); got != "one" {
		t.Errorf("with other options it says %q", got)
	}
	must(w.SetEnabled(t.Context(), &protocol.PluginEnableParams{Name: "guest"})).of(t)
	if got := w.call(id, "version", `{}`); !strings.Contains(got, "options") {
		t.Errorf("switched off, it says %q", got)
	}
	w.until("its process is gone", func() bool { return !alive(pid) })
	w.write("o/plugin.json", options("limit"))
	w.until("it is opened again", func() bool { return strings.Contains(w.call(id, "version", `{}`), "no such tool") })
}

// startsLate has a plugin of a workspace hang in its handshake while a session needs it for the first time.
func startsLate(t *testing.T) {
	w, cwd := newWorld(t).start(), workspace(t)
	id := w.session(cwd)
	put(t, cwd, "version", "hangs")
	put(t, cwd, "plugin.json", strings.Replace(toolNamed("guest", "version"), `"env":{`, `"deadlines":{"startMs":3000},"env":{`, 1))
	must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: cwd})).of(t)
	if now := w.approve(cwd); now.Status != protocol.PluginFailed {
		t.Fatalf("it does not hang: %+v", now)
	}
	w.restart()
	waiting := make(chan string)
	go func() { waiting <- w.call(id, "version", `{}`) }()
	time.Sleep(300 * time.Millisecond)
	quick(t, "attaching to the session", func() {
		_, sub, err := w.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		sub.Close()
	})
	quick(t, "a session elsewhere", func() { w.call(w.session(""), "version", `{}`) })
	select {
	case got := <-waiting:
		t.Errorf("it did not wait for the plugin, and says %q", got)
	default:
		if got := <-waiting; !strings.Contains(got, "no such tool") {
			t.Errorf("it says %q", got)
		}
	}
}
