package e2e

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

// TestACPGap puts an older copy of the data in the place of what an editor has seen, while nothing is asked, and while a prompt is.
func TestACPGap(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	e.says("[[fake]]")
	w.shutdown()
	sh(t, "cp -a $0 $0.copy", w.dir)
	for _, c := range []struct {
		name string
		over func() string // what was asked is over
	}{
		{"between prompts", func() string { return string(e.says("[[fake]]")) }},
		{"in a prompt", func() string {
			done := e.begins("[[fake deltas=100000 us=20000]]")
			before := len(e.story())
			e.until("the answer begins", func() bool { return len(e.storyLocked()) > before })
			w.older(e)
			return acpRefusal((<-done).err)
		}},
	} {
		before := strings.Count(e.story(), "thought: The history of this session is not the one that was shown")
		got := c.over()
		if want := map[string]string{"between prompts": "end_turn", "in a prompt": "-32002 turnNotFound"}[c.name]; got != want {
			t.Errorf("issue/6-3 %s: it ends with %s, want %s", c.name, got, want)
		}
		if c.name == "between prompts" {
			w.older(e)
		}
		if stop := e.says("[[fake]]"); stop != sdk.StopReasonEndTurn || !strings.HasSuffix(e.story(), "agent: "+finalText(t, w, e)) {
			t.Errorf("issue/6-3 %s: the next prompt ends with %s:\n%s", c.name, stop, e.story())
		}
		if told := strings.Count(e.story(), "thought: The history of this session is not the one that was shown") - before; told != 1 {
			t.Errorf("issue/6-3 %s: the person was told %d times:\n%s", c.name, told, e.story())
		}
	}
}

// older kills the daemon and puts the copy of its data there, while the editor's lashd sleeps.
func (w *world) older(e *acpEditor) {
	w.t.Helper()
	signal := func(s syscall.Signal) error { return e.cmd.Process.Signal(s) }
	if err := signal(syscall.SIGSTOP); err != nil {
		w.t.Fatal(err)
	}
	w.killWhoServes()
	sh(w.t, "rm -r $0 && cp -a $0.copy $0", w.dir)
	if err := signal(syscall.SIGCONT); err != nil {
		w.t.Fatal(err)
	}
}

func sh(t *testing.T, script string, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", append([]string{"-c", script}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}
