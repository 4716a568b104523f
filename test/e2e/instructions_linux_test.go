package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// instructed is a world with instructions of the user, of the layout of the user, and of the workspace.
func instructed(t *testing.T, w *world) {
	t.Helper()
	for path, text := range map[string]string{
		filepath.Join(w.dir, "AGENTS.md"): "be brief", filepath.Join(w.user, ".claude/CLAUDE.md"): "be kind", filepath.Join(w.user, ".claude/commands/x.md"): "a command",
		filepath.Join(w.work, "AGENTS.md"): "top @docs/more.md @docs/hidden.md", filepath.Join(w.work, "docs/more.md"): "imported text", filepath.Join(w.work, "docs/hidden.md"): "hidden text",
		filepath.Join(w.work, "sub/AGENTS.md"): "instructions of sub", filepath.Join(w.work, "sub/a.txt"): "a",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		w.write(path, text)
	}
}

// prompt returns the system prompt of the newest request.
func (w *world) prompt() string {
	all := w.model.Requests()
	for _, m := range all[len(all)-1].Chat.Messages {
		if m.Role == "system" {
			return string(m.Content)
		}
	}
	return ""
}

// toldOf returns how many messages of the newest request have the instructions of sub.
func (w *world) toldOf() (n int) {
	for _, text := range w.sent() {
		n += strings.Count(text, "instructions of sub")
	}
	return n
}

func TestInstructions(t *testing.T) {
	readsSub := step(uses("read", map[string]string{"path": "sub/a.txt"}))
	t.Run("part13/7 the prompt has the instructions of the user and of the workspace with imports", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("one")), step(says("two")))
		w.write(filepath.Join(w.dir, "config.toml"), configFor(w.door.Addr(), "allow")+"[[rules]]\naction = \"deny\"\npath = \"docs/hidden.md\"\n")
		instructed(t, w)
		w.serve()
		p := w.dial("")
		id := p.session(w.home)
		p.turn(id, "go")
		contains(t, w.prompt(), "be brief", "be kind", "top @docs/more.md", "imported text")
		if strings.Contains(w.prompt(), "hidden text") || strings.Contains(w.prompt(), "instructions of sub") {
			t.Errorf("the prompt has more than that:\n%s", w.prompt())
		}
		w.lash("plugin", "disable", "home")
		p.turn(id, "go on")
		if text := w.prompt(); strings.Contains(text, "be kind") || !strings.Contains(text, "be brief") {
			t.Errorf("without the layout of the user the prompt is:\n%s", text)
		}
	})
	t.Run("part13/7 instructions of a directory are added once, also after kill -9 and in a fork", func(t *testing.T) {
		w := newWorld(t, "allow", readsSub, step(says("I"), stalls), step(says("one")), readsSub, step(says("two")), readsSub, step(says("three")))
		instructed(t, w)
		d := w.serve()
		p := w.dial("")
		id := p.session(w.home)
		turn := p.start(id, "go").TurnID
		w.asked(2)
		if n := w.toldOf(); n != 1 {
			t.Errorf("before the crash the model was told %d times", n)
		}
		d.kill()
		w.serve()
		p = w.dial("")
		p.wait(turn)
		if n := w.toldOf(); n != 1 {
			t.Errorf("after the crash the model was told %d times", n)
		}
		fork := ask[protocol.SessionNewResult](p, "session/fork", protocol.SessionForkParams{SessionID: id}).SessionID
		for _, id := range []protocol.SessionID{id, fork} {
			p.turn(id, "again")
			if n := w.toldOf(); n != 1 {
				t.Errorf("after another call in %s the model was told %d times", id, n)
			}
		}
		list := ask[protocol.InstructionListResult](p, "instruction/list", protocol.SessionParams{SessionID: id})
		var got []string
		for _, f := range list.Data {
			got = append(got, f.Name+" "+string(f.Origin)+" "+string(f.Use))
		}
		want := []string{
			filepath.Join(w.dir, "AGENTS.md") + " user always", "~/.claude/CLAUDE.md user always", "AGENTS.md workspace always", "docs/more.md workspace always",
			"docs/hidden.md workspace always", "sub/AGENTS.md workspace added",
		}
		if !slices.Equal(got, want) || list.UserFile != filepath.Join(w.dir, "AGENTS.md") {
			t.Errorf("listed %q, want %q; the user's file is %s", got, want, list.UserFile)
		}
		contains(t, strings.Join(texts(readSession(p, id).Data), "\n"), "[Instructions of sub/AGENTS.md]")
	})
}

func TestInit(t *testing.T) {
	writes := step(uses("write", map[string]string{"path": "AGENTS.md", "content": "new"}))
	for name, c := range map[string]struct {
		before, want string
		asks         bool
	}{
		"part13/7 /init writes an AGENTS.md":                                          {"", "new", false},
		"part13/7 /init asks before it changes an AGENTS.md, although all is allowed": {"old", "old", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "allow", writes, step(says("Done.")))
			defer w.shutdown()
			path := filepath.Join(w.work, "AGENTS.md")
			if c.before != "" {
				w.write(path, c.before)
			}
			if c.asks {
				w.denied("/init the tests")
			} else {
				w.lash("run", "/init the tests")
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
				t.Errorf("AGENTS.md is %q, %v; want %q", got, err, c.want)
			}
			contains(t, w.bodies()[0], "Write the file AGENTS.md in the root of this workspace", "the tests")
		})
	}
	t.Run("part13/7 without /init no question comes", func(t *testing.T) {
		w := newWorld(t, "allow", writes, step(says("Done.")))
		defer w.shutdown()
		w.write(filepath.Join(w.work, "AGENTS.md"), "old")
		w.lash("run", "change it")
		if w.size("AGENTS.md") != len("new") {
			t.Error("AGENTS.md was not written")
		}
	})
}
