//go:build unix

package background

import (
	"os"
	"path/filepath"
	"testing"

	"lashd/rpc/protocol"
)

func TestWorkdirOfATask(t *testing.T) {
	for _, c := range []struct {
		row, link string
		started   bool
	}{
		{"a directory of the workspace", "", true},
		{"a link to a directory of the workspace", "other", true},
		{"a directory that was made a link out of the workspace", "../outside", false},
	} {
		t.Run("outside/7 "+c.row, func(t *testing.T) {
			top := t.TempDir()
			ws := filepath.Join(top, "ws")
			for _, dir := range []string{"ws/sub", "ws/other", "outside"} {
				if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.link != "" {
				if err := os.Remove(filepath.Join(ws, "sub")); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(c.link, filepath.Join(ws, "sub")); err != nil {
					t.Fatal(err)
				}
			}
			commands := &Commands{Environ: []string{"PATH=" + os.Getenv("PATH")}, Nonce: t.Name(), Outputs: NewOutputs(t.TempDir())}
			task := protocol.Task{ID: "tsk_x", Spec: protocol.TaskSpec{Command: &protocol.TaskShell{Script: "touch ran", Workdir: filepath.Join(ws, "sub")}}}
			out := commands.Run(t.Context(), &task, ws, make(chan Signal))
			if started := out.Kind == protocol.TaskExited; started != c.started {
				t.Errorf("it started: %v, want %v: %+v", started, c.started, out)
			}
			if _, err := os.Stat(filepath.Join(top, "outside/ran")); err == nil {
				t.Error("it ran outside of the workspace")
			}
		})
	}
}
