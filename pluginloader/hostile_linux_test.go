package pluginloader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// hostile is a workspace whose .agents/plugins is made by make.
func hostile(t *testing.T, make func(agents, plugins string)) string {
	cwd := t.TempDir()
	agents := filepath.Join(cwd, ".agents")
	check(t, os.Mkdir(agents, 0o755))
	make(agents, filepath.Join(agents, "plugins"))
	return cwd
}

// processorTime is what this process has used so far.
func processorTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	check(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// root is how the plugins of a workspace are watched, and all of them.
func (w *world) root(cwd string) (root protocol.PluginRoot, plugins []protocol.PluginInfo) {
	w.t.Helper()
	all := must(w.List(w.t.Context(), &protocol.PluginListParams{Cwd: cwd})).of(w.t)
	for _, r := range all.Roots {
		if strings.HasPrefix(r.Dir, cwd) {
			root = r
		}
	}
	for _, p := range all.Data {
		if p.Scope == protocol.ScopeWorkspace {
			plugins = append(plugins, p)
		}
	}
	return root, plugins
}

func TestHostileWorkspaces(t *testing.T) {
	for name, make := range map[string]func(agents, plugins string){
		"plugins is a link to /": func(_, plugins string) { check(t, os.Symlink("/", plugins)) },
		"plugins is a link to another workspace": func(_, plugins string) {
			check(t, os.Symlink(filepath.Join(workspace(t), ".agents/plugins"), plugins))
		},
		".agents is a link": func(agents, _ string) {
			check(t, os.Remove(agents), os.Symlink(filepath.Join(workspace(t), ".agents"), agents))
		},
	} {
		t.Run("outside/5 "+name, func(t *testing.T) { linkedRoot(t, hostile(t, make)) })
	}
	t.Run("outside/5 a plugin is a link out of the workspace", linkedPlugin)
	t.Run("outside/5 a scan reads a bounded number of entries of unapproved plugins", manyEntries)
	t.Run("outside/5 a scan reads a bounded number of bytes of unapproved plugins", manyBytes)
	t.Run("outside/5 a scan of unapproved plugins has a time limit", longScan)
	t.Run("outside/5 files that never end are refused", endlessFiles)
}

// linkedRoot expects that nothing outside the workspace is read and that the reason is reported.
func linkedRoot(t *testing.T, cwd string) {
	w := newWorld(t).start()
	before := processorTime(t)
	w.session(cwd)
	w.until("it is refused", func() bool {
		root, _ := w.root(cwd)
		return strings.Contains(root.Reason, "outside the workspace")
	})
	time.Sleep(2 * time.Second)
	if used := processorTime(t) - before; used > time.Second {
		t.Errorf("it used %s of a processor", used)
	}
	if _, plugins := w.root(cwd); len(plugins) != 0 {
		t.Errorf("there are plugins: %+v", plugins)
	}
}

func linkedPlugin(t *testing.T) {
	cwd := workspace(t)
	check(t, os.Symlink(filepath.Join(workspace(t), ".agents/plugins/g"), filepath.Join(cwd, ".agents/plugins/out")))
	check(t, os.Symlink("../../shared", filepath.Join(cwd, ".agents/plugins/in")))
	save(t, filepath.Join(cwd, "shared/plugin.json"), `{"name":"shared","lashd":{}}`)
	w := newWorld(t).start()
	w.session(cwd)
	out := w.status(cwd, "out", protocol.PluginFailed)
	if len(out.Problems) != 1 || !strings.Contains(out.Problems[0].Message, "outside the workspace") {
		t.Errorf("it is %+v", out)
	}
	if in := w.status(cwd, "shared", protocol.PluginUntrusted); in.Found == "" {
		t.Errorf("a link inside the workspace: %+v", in)
	}
}

func manyEntries(t *testing.T) {
	cwd := t.TempDir()
	for p := range 5 {
		put(t, cwd, "../p"+fmt.Sprint(p)+"/plugin.json", fmt.Sprintf(`{"name":"p%d","lashd":{}}`, p))
		for d := range 9 {
			check(t, os.Mkdir(filepath.Join(cwd, fmt.Sprintf(".agents/plugins/p%d/%d", p, d)), 0o755))
			for f := range 1000 {
				check(t, os.WriteFile(filepath.Join(cwd, fmt.Sprintf(".agents/plugins/p%d/%d/%d", p, d, f)), nil, 0o644))
			}
		}
	}
	w := newWorld(t).start()
	w.session(cwd)
	for p, read := range []bool{true, true, false, false, false} {
		info := w.status(cwd, fmt.Sprint("p", p), protocol.PluginUntrusted)
		if got := info.Found != ""; got != read {
			t.Errorf("plugin %d is %+v", p, info)
		}
	}
	seen := must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "p4", Cwd: cwd})).of(t)
	now := must(w.Trust(t.Context(), &protocol.PluginTrustParams{Name: "p4", Cwd: cwd, Digest: seen.Digest})).of(t).Plugin
	if now.Status != protocol.PluginLoaded {
		t.Errorf("approved, it is %+v", now)
	}
}

func manyBytes(t *testing.T) {
	cwd := t.TempDir()
	for p := range 6 {
		put(t, cwd, "../p"+fmt.Sprint(p)+"/plugin.json", fmt.Sprintf(`{"name":"p%d","lashd":{}}`, p))
		file := filepath.Join(cwd, fmt.Sprintf(".agents/plugins/p%d/large", p))
		check(t, os.WriteFile(file, nil, 0o644), os.Truncate(file, 30<<20))
	}
	w := newWorld(t).start()
	w.session(cwd)
	for p, read := range []bool{true, true, true, true, false, false} {
		info := w.status(cwd, fmt.Sprint("p", p), protocol.PluginUntrusted)
		if got := info.Found != ""; got != read {
			t.Errorf("plugin %d is %+v", p, info)
		}
	}
}

func longScan(t *testing.T) {
	cwd := workspace(t)
	w := newWorld(t)
	w.scan = time.Nanosecond
	w.start().session(cwd)
	if info := w.status(cwd, "g", protocol.PluginUntrusted); info.Found != "" || len(info.Problems) != 1 || !strings.Contains(info.Problems[0].Message, "take longer than 5s to read") {
		t.Errorf("it is %+v", info)
	}
}

func endlessFiles(t *testing.T) {
	cwd := t.TempDir()
	plugin := func(name string) string {
		dir := filepath.Join(cwd, ".agents/plugins", name)
		check(t, os.MkdirAll(dir, 0o755))
		return dir
	}
	check(t, syscall.Mkfifo(filepath.Join(plugin("pipe"), "plugin.json"), 0o644))
	check(t, os.Symlink("/dev/zero", filepath.Join(plugin("zero"), "plugin.json")))
	check(t, os.Symlink("/dev/zero", filepath.Join(plugin("hooks"), "hooks")))
	sparse := filepath.Join(cwd, "sparse")
	check(t, os.WriteFile(sparse, nil, 0o755), os.Truncate(sparse, 1<<40))
	for name, program := range map[string]string{"device": "/dev/zero", "sparse": sparse, "kernel": "/proc/kmsg", "empty": "/proc/self/status"} {
		check(t, os.WriteFile(filepath.Join(plugin(name), "plugin.json"),
			fmt.Appendf(nil, `{"name":%q,"lashd":{"process":{"command":[%q]}}}`, name, program), 0o644))
	}
	check(t, syscall.Mkfifo(filepath.Join(cwd, ".agents/plugins/fifo"), 0o644))
	w := newWorld(t).start()
	before := processorTime(t)
	w.session(cwd)
	for _, name := range []string{"pipe", "zero", "hooks", "device", "sparse", "kernel", "empty"} {
		if info := w.status(cwd, name, protocol.PluginFailed); len(info.Problems) == 0 {
			t.Errorf("%s: %+v", name, info)
		}
	}
	if used := processorTime(t) - before; used > 5*time.Second {
		t.Errorf("it used %s of a processor", used)
	}
}
