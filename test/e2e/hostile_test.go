//go:build unix

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// hostile is a workspace that tries to run its canary when a user merely opens it.
type hostile struct {
	t      *testing.T
	dir    string // the workspace
	out    string // a directory beside it, for targets of links
	canary string // a program that leaves a mark when it runs
	marks  string // the directory of the marks, which nothing else knows
}

// newHostile creates a workspace that has only its canary.
func newHostile(t *testing.T, write func(*hostile)) *hostile {
	t.Helper()
	base := t.TempDir()
	h := &hostile{t, filepath.Join(base, "work"), filepath.Join(base, "out"), filepath.Join(base, "work/canary"), filepath.Join(base, "marks")}
	for _, dir := range []string{h.dir, h.out, h.marks} {
		h.check(os.Mkdir(dir, 0o755))
	}
	h.program("canary")
	write(h)
	return h
}

func (h *hostile) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// fired returns the marks of the canaries that have run.
func (h *hostile) fired() []string {
	var names []string
	entries, err := os.ReadDir(h.marks)
	h.check(err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// file writes a file. CANARY in its text is replaced by the path of the canary.
func (h *hostile) file(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	h.check(os.MkdirAll(filepath.Dir(path), 0o755))
	h.check(os.WriteFile(path, []byte(strings.ReplaceAll(text, "CANARY", h.canary)), 0o644))
}

// program writes another canary.
func (h *hostile) program(name string) {
	h.t.Helper()
	h.file(name, fmt.Sprintf("#!/bin/sh\n: > '%s/'\"$(basename \"$0\")-$$\"\n", h.marks))
	h.check(os.Chmod(filepath.Join(h.dir, name), 0o755))
}

func (h *hostile) link(to, name string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	h.check(os.MkdirAll(filepath.Dir(path), 0o755))
	h.check(os.Symlink(to, path))
}

// plugin writes the plugin.json of a workspace plugin with these contributions.
func (h *hostile) plugin(name, lashd string) {
	h.t.Helper()
	h.file(".agents/plugins/"+name+"/plugin.json", fmt.Sprintf(`{"name": %q, "lashd": %s}`, name, lashd))
}

// The canary must work, or the test would prove nothing.
func TestTheCanaryIsSeen(t *testing.T) {
	h := newHostile(t, func(*hostile) {})
	if got := h.fired(); len(got) > 0 {
		t.Fatalf("%q ran", got)
	}
	if out, err := exec.Command(h.canary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := h.fired(); len(got) != 1 || !strings.HasPrefix(got[0], "canary-") {
		t.Errorf("%q ran", got)
	}
}

// edit saves all files of the workspace's plugins again with an additional line.
func (h *hostile) edit() {
	h.t.Helper()
	h.check(filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasPrefix(path, filepath.Join(h.dir, ".")) {
			return nil // some files are unreadable on purpose
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil
		}
		defer f.Close()
		_, err = f.WriteString("\n")
		return err
	}))
}

// look calls every method that reads the workspace's plugins.
func (h *hostile) look(p *peer) {
	h.t.Helper()
	ask[protocol.PluginReloadResult](p, "plugin/reload", protocol.PluginReloadParams{Cwd: h.dir})
	all := ask[protocol.PluginListResult](p, "plugin/list", protocol.PluginListParams{Cwd: h.dir})
	for _, info := range all.Data {
		if info.Scope == protocol.ScopeWorkspace {
			ask[protocol.PluginReadResult](p, "plugin/read", protocol.PluginReadParams{Name: info.Name, Cwd: h.dir})
		}
	}
}

// TestNothingOfAWorkspaceRunsUnasked opens each hostile workspace, runs a turn with a tool call, saves
// the plugins again, lists them, and opens the workspace again after a crash.
func TestNothingOfAWorkspaceRunsUnasked(t *testing.T) {
	w := newWorld(t, "allow")
	d := w.serve()
	p := w.dial("")
	opened := map[string]*hostile{}
	sessions := map[string]protocol.SessionID{}
	for name, write := range hostiles {
		h := newHostile(t, write)
		opened[name] = h
		sessions[name] = ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: h.dir}).SessionID
		p.turn(sessions[name], paced("true"))
		h.edit()
		h.look(p)
		p.turn(sessions[name], "hello")
	}
	d.kill()
	w.serve()
	p = w.dial("")
	for name, h := range opened {
		t.Run("reliability/T5 "+name, func(t *testing.T) {
			p.attach(sessions[name], 0)
			p.turn(sessions[name], "hello")
			if got := h.fired(); len(got) > 0 {
				t.Errorf("%q ran", got)
			}
		})
	}
	if n := len(opened); n < 40 {
		t.Errorf("%d workspaces, want at least 40", n)
	}
}
