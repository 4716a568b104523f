package e2e

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// TestACPGap replaces the data by an older copy than the editor has seen, both while idle and during a
// prompt.
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
		over func() string // the result of the request, which must end
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
		before := strings.Count(e.story(), "thought: The history of this session has changed")
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
		if told := strings.Count(e.story(), "thought: The history of this session has changed") - before; told != 1 {
			t.Errorf("issue/6-3 %s: the note was shown %d times:\n%s", c.name, told, e.story())
		}
	}
}

// older kills the daemon and restores the copy of its data while lashd acp is stopped.
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

// TestACPAskedMeanwhile kills the daemon while a question is open. Before lashd acp reconnects,
// another client answers it and a second question opens.
func TestACPAskedMeanwhile(t *testing.T) {
	w := newWorld(t, "ask")
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	withdrawn := make(chan struct{})
	e.answers(func(ctx context.Context, p sdk.RequestPermissionRequest) string {
		if strings.Contains(*p.ToolCall.Title, "first") {
			<-ctx.Done()
			close(withdrawn)
		}
		return "allowOnce"
	})
	done := e.begins(commands("printf x >> first"))
	e.until("the person is asked", func() bool { return len(e.asked) == 1 })
	if err := e.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.killWhoServes()
	eventually(t, "another daemon is started", func() error { return w.command("call", "ping").Run() })
	p, id := w.dial(""), protocol.SessionID(e.id)
	open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data
	p.allow(open[0])
	ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: id})
	p.attach(id, 0)
	p.start(id, commands("printf x >> second"))
	p.event("the second question is open", func(ev protocol.Event) bool { return opened(ev) && ev.Decision.ID != open[0].ID })
	if err := e.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.stop != sdk.StopReasonEndTurn || r.err != nil || w.size("first") != 1 {
		t.Errorf("issue/6-3 the prompt that was answered elsewhere ends with %s %v, and the command ran %d times", r.stop, r.err, w.size("first"))
	}
	<-withdrawn
	e.until("the second question is shown", func() bool { return len(e.asked) == 2 })
	ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: id})
	if w.size("second") != 1 {
		t.Errorf("issue/6-3 the second command ran %d times", w.size("second"))
	}
}
