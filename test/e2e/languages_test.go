//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// language is a language of plugins: the file of a new plugin that decides what is denied, and a file
// whose first half does not load.
type language struct{ name, rule, half string }

var languages = []language{
	{"python", "main.py", "main.py"}, {"ts", "handlers.mts", "handlers.mts"}, {"go", "main.go", "main.go"},
	{"command", "guard.sh", "hooks/hooks.json"},
}

// has makes sure that the tools of a language are available.
func (h *home) has(lang string) {
	h.t.Helper()
	switch lang {
	case "python":
		_, err := exec.LookPath("python3")
		skip.Unless(h.t, "PYTHON", err == nil, "there is no python3")
	case "ts":
		installed, err := filepath.Glob("../../.cache/node/node_modules/node-*/bin")
		for _, dir := range installed {
			if dir, err = filepath.Abs(dir); err == nil {
				h.path = append(h.path, dir)
			}
		}
		node := h.command()
		node.Path, node.Args = "/bin/sh", []string{"sh", "-c", `node --eval 'process.exit(process.features.typescript ? 0 : 1)'`}
		skip.Unless(h.t, "NODE", err == nil && node.Run() == nil, "there is no node that runs TypeScript; scripts/test installs one")
	case "go": // reuse the user's build cache
		out, err := exec.Command("go", "env", "GOCACHE").Output()
		if err != nil {
			h.t.Fatal(err)
		}
		h.file(filepath.Join(h.user, ".config", "go", "env"), "GOCACHE="+string(out))
	}
}

// lashd runs a command that must succeed, and returns its output.
func (h *home) lashd(args ...string) string {
	h.t.Helper()
	out, err := h.command(args...).Output()
	if err != nil {
		h.t.Fatalf("lashd %q: %v: %s", args, err, out)
	}
	return string(out)
}

// denies reports whether the plugin denies a command. If it does not, the command must have run.
func (p *peer) denies(id protocol.SessionID, text string) bool {
	p.t.Helper()
	return denied(p.t, called(p.t, p.turn(id, paced("echo "+text)), "shell"), text)
}

func denied(t *testing.T, out protocol.ToolOutput, text string) bool {
	t.Helper()
	if out.Failure == nil && strings.Contains(out.Text, text) {
		return false
	}
	if out.Failure == nil || !strings.Contains(out.Failure.Message, "not allowed") {
		t.Errorf("echo %s returned %+v %+v", text, out, out.Failure)
	}
	return true
}

// author is a user who writes a plugin.
type author struct {
	*world
	language
	dir string
}

// saves replaces a text in a file of the plugin, atomically.
func (a *author) saves(file, old, now string) {
	a.t.Helper()
	path := filepath.Join(a.dir, file)
	text := readText(a.t, path)
	if !strings.Contains(text, old) {
		a.t.Fatalf("%s has no %q", file, old)
	}
	a.file(path, strings.ReplaceAll(text, old, now))
}

// halves leaves only the first half of a file, as an editor may for a moment, and returns the whole.
func (a *author) halves() string {
	a.t.Helper()
	path := filepath.Join(a.dir, a.half)
	text := readText(a.t, path)
	a.write(path, text[:len(text)/2])
	return text
}

func (p *peer) degraded(name string) {
	p.t.Helper()
	eventually(p.t, "the daemon notices that "+name+" is broken", func() error {
		if info := p.listed(name); info.Status != protocol.PluginDegraded || len(info.Problems) == 0 {
			return fmt.Errorf("the plugin is %+v", info)
		}
		return nil
	})
}

// TestNewPlugins loads the output of lash plugin new and has its author edit it.
func TestNewPlugins(t *testing.T) {
	for _, lang := range languages {
		t.Run("issue/4-9 "+lang.name, func(t *testing.T) {
			a := &author{world: newWorld(t, "allow"), language: lang}
			a.has(lang.name)
			a.dir = filepath.Join(a.plugins(), "guard")
			if err := os.MkdirAll(a.plugins(), 0o755); err != nil {
				t.Fatal(err)
			}
			a.lashd("plugin", "new", "--lang", lang.name, "guard", a.dir)
			d := a.serve()
			p := a.dial("")
			p.loads("guard", nil)
			a.works(p)
			a.edits(p)
			text := a.halves()
			p.degraded("guard")
			if id := p.session(a.home); !p.denies(id, "drop table") || p.denies(id, "rm -rf") {
				t.Error("issue/4-5 while a file is half written, the last good version does not run")
			}
			d.kill()
			a.serve()
			p = a.dial("")
			if id := p.session(a.home); !p.denies(id, "drop table") || p.denies(id, "rm -rf") {
				t.Error("issue/4-5 after a restart, the last good version does not run")
			}
			p.degraded("guard")
			a.file(filepath.Join(a.dir, a.half), text)
			p.loads("guard", nil)
		})
	}
}

// works checks that the new plugin takes part in turns.
func (a *author) works(p *peer) {
	a.t.Helper()
	id := p.session(a.home)
	if !p.denies(id, "rm -rf") || p.denies(id, "fine") {
		a.t.Error("issue/4-9 the hook of a new plugin has no effect")
	}
	if a.name == "command" {
		a.write(filepath.Join(a.work, "three"), "1\n2\n3\n")
		p.says(id, "guard_lines", `{"file":"three"}`, "3 three")
		return
	}
	p.says(id, "guard_greet", `{"name":"Ada"}`, "Hello, Ada!")
}

// busy checks that a reload can be refused while a turn runs, and that a dry run never is.
func (a *author) busy() {
	a.t.Helper()
	refused := a.command("plugin", "reload", "--refuse")
	refused.Stderr = nil
	_, err := refused.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 1 || !strings.Contains(string(e.Stderr), "is running") {
		a.t.Errorf("issue/4-5 a reload with --refuse during a turn: %v", err)
	}
	if said := a.lashd("plugin", "reload", "--dry-run", "--json"); !strings.Contains(said, `"name":"guard","change":"unchanged"`) {
		a.t.Errorf("issue/4-5 a dry run prints %s", said)
	}
}

// edits changes what is denied while a turn runs. The running turn keeps the version that it started
// with.
func (a *author) edits(p *peer) {
	a.t.Helper()
	was := p.listed("guard").Digest
	old, young := p.session(a.home), p.session(a.home)
	before := len(a.model.Requests())
	a.model.Push(step(stalls, shell("echo rm -rf")), done)
	turn := p.start(old, "go").TurnID
	a.asked(before + 1)
	a.busy()
	a.saves(a.rule, "rm -rf", "drop table")
	p.loads("guard", func(i protocol.PluginInfo) bool { return i.Digest != was })
	if p.denies(young, "rm -rf") || !p.denies(young, "drop table") {
		a.t.Error("issue/4-5 an edit has no effect in the next turn")
	}
	a.model.Release()
	if out := called(a.t, p.wait(turn), "shell"); !denied(a.t, out, "rm -rf") {
		a.t.Error("issue/4-5 a running turn switched to the edited plugin")
	}
	if p.denies(old, "rm -rf") {
		a.t.Error("issue/4-5 an edit has no effect in the next turn of a session that was running")
	}
}
