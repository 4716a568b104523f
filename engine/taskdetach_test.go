//go:build unix

package engine_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine"
	"lashd/rpc/protocol"
)

func TestDetached(t *testing.T) {
	whole := t
	apart := func(script string) protocol.TaskSpec {
		s := command(script, protocol.RecoverExternal)
		s.Command.Detach = true
		return s
	}
	path := func(s *setup) {
		s.config = func(c *engine.Config) { c.Environ = []string{"PATH=" + os.Getenv("PATH")} }
	}
	first := setup{dir: t.TempDir(), model: replies()}
	path(&first)
	d := start(t, first)
	s := d.session(t)
	t.Run("issue/5-2 a detached command is seen to end", func(t *testing.T) {
		d.task(t, s, "tsk_short", apart("echo out; echo err >&2; exit 3"))
		got := d.ended(t, s, "tsk_short")
		if got.State != protocol.TaskFailed || *got.Outcome.ExitCode != 3 || !strings.HasPrefix(got.Ref, "process ") || got.Attempt != 0 {
			t.Errorf("it ended as %s %+v, with the reference %q", got.State, got.Outcome, got.Ref)
		}
		if out := d.output(t, s, "tsk_short"); out != "out\nerr\n" {
			t.Errorf("its output is %q", out)
		}
	})
	t.Run("issue/5-2 a detached command outlives the daemon, which does not end it if that is for others, and sees it end all the same", func(t *testing.T) {
		spec := apart("echo begun; until [ -e go ]; do sleep 0.02; done; echo gone on; exit 5")
		spec.Cancel = protocol.CancelElsewhere
		d.task(t, s, "tsk_long", spec)
		d.outputHas(t, s, "tsk_long", "begun")
		must[*protocol.TaskResult](t)(d.CancelTask(t.Context(), "cli_b", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: "tsk_long"}}))
		cwd := must[*protocol.SessionReadResult](t)(d.ReadSession(t.Context(), &protocol.SessionReadParams{SessionID: s})).Session.Cwd
		d = d.restart(whole, path)
		if got := d.readTask(t, s, "tsk_long").Task; got.State != protocol.TaskCancelRequested {
			t.Errorf("after a restart it is %s %+v", got.State, got.Outcome)
		}
		if err := os.WriteFile(cwd+"/go", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		got := d.ended(t, s, "tsk_long")
		if got.State != protocol.TaskFailed || got.Outcome.Kind != protocol.TaskExited || *got.Outcome.ExitCode != 5 {
			t.Errorf("it ended as %s %+v", got.State, got.Outcome)
		}
		if out := d.output(t, s, "tsk_long"); out != "begun\ngone on\n" {
			t.Errorf("its output is %q", out)
		}
	})
	for _, c := range []struct {
		name, script string
		state        protocol.TaskState
		want         protocol.TaskOutcome
		output       string
	}{
		{"with all that it has started", "sleep 1000 & echo begun; exec sleep 1000", protocol.TaskCancelled, protocol.TaskOutcome{Kind: protocol.TaskStopped, ExitCode: new(143), By: "cli_b"}, "begun\n"},
		{"as it likes", `trap "echo bye; exit 0" TERM; sleep 1000 & echo begun; wait`, protocol.TaskCompleted, protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: new(0)}, "begun\nbye\n"},
		{"or is killed", `trap "" TERM; echo begun; while :; do sleep 0.02; done`, protocol.TaskCancelled, protocol.TaskOutcome{Kind: protocol.TaskStopped, By: "cli_b"}, "begun\n"},
	} {
		t.Run("issue/5-2 a detached command that is asked to end does so, "+c.name, func(t *testing.T) {
			id := protocol.TaskID(protocol.DigestOf([]byte(c.name)))
			d.task(t, s, id, apart(c.script))
			d.outputHas(t, s, id, "begun")
			must[*protocol.TaskResult](t)(d.CancelTask(t.Context(), "cli_b", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: id}}))
			got := d.ended(t, s, id)
			if diff := cmp.Diff(*got.Outcome, c.want); diff != "" || got.State != c.state {
				t.Errorf("it ended as %s: %s", got.State, diff)
			}
			if out := d.output(t, s, id); out != c.output {
				t.Errorf("its output is %q, want %q", out, c.output)
			}
		})
	}
	t.Run("issue/5-2 of one that is nowhere nobody can say how it ended", func(t *testing.T) {
		d.task(t, s, "tsk_lost", apart("echo $$ >pid; sleep 1000"))
		cwd := must[*protocol.SessionReadResult](t)(d.ReadSession(t.Context(), &protocol.SessionReadParams{SessionID: s})).Session.Cwd
		pid := 0
		eventually(t, func() bool {
			text, err := os.ReadFile(cwd + "/pid")
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			return err == nil
		})
		group, err := syscall.Getpgid(pid)
		if err == nil {
			err = syscall.Kill(-group, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := d.ended(t, s, "tsk_lost"); got.State != protocol.TaskAbandoned || got.Outcome.Evidence == nil {
			t.Errorf("it ended as %s %+v", got.State, got.Outcome)
		}
	})
}
