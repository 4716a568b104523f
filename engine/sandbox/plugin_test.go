package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/engine/proc"
)

func TestForPlugin(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(home, "work")
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("work/.vscode/tasks.json", "{}")
	put("notes/.envrc", "")
	put(".ssh/id", "")
	p := Places{Home: home}
	held := func(write ...string) proc.Confinement { return proc.Confinement{Sandbox: &proc.Sandbox{Write: write}} }
	box, err := p.ForPlugin(held(filepath.Join(home, "notes")), work, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("issue/20-1 a program that runs on cannot change what starts programs, also in directories that its manifest names", func(t *testing.T) {
		want := filepath.Join(home, "notes/.envrc") + " " + filepath.Join(work, ".vscode")
		if got := strings.Join(box.Confinement.Sandbox.Keep, " "); got != want {
			t.Errorf("it keeps %s, want %s", got, want)
		}
	})
	t.Run("issue/20-1 files that start programs and that appeared after its start are looked at after each call", func(t *testing.T) {
		put("work/.envrc", "mine")
		put("work/.agents/rules.toml", "mine")
		put("work/.idea/x", "mine")
		time.Sleep(3 * clockStep) // the times of files have that precision
		changes := box.Watch()
		put("work/.envrc", "evil")
		put("work/.mcp.json", "evil")
		if err := os.RemoveAll(filepath.Join(work, ".agents")); err != nil {
			t.Fatal(err)
		}
		if got := changes(); !strings.Contains(got, ": .mcp.json; .agents (removed); .envrc (changed). Tell") {
			t.Errorf("%q", got)
		}
	})
	t.Run("issue/20-1 where commands only read the workspace, so does a plugin", func(t *testing.T) {
		box, err := p.ForPlugin(held(), home, true)
		if err != nil || len(box.Confinement.Sandbox.Write) > 0 || len(box.Confinement.Sandbox.Read) != 1 {
			t.Errorf("%+v, %v", box, err)
		}
		if _, err := p.ForPlugin(held(), filepath.Join(home, ".ssh"), true); err == nil {
			t.Error("it writes to a hidden directory")
		}
	})
}
