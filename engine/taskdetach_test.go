//go:build unix

package engine_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine"
	"lashd/persistence"
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
	t.Run("issue/5-2 lashd reports the end of a detached command", func(t *testing.T) {
		d.task(t, s, "tsk_short", apart("echo out; echo err >&2; exit 3"))
		got := d.ended(t, s, "tsk_short")
		if got.State != protocol.TaskFailed || *got.Outcome.ExitCode != 3 || !strings.HasPrefix(got.Ref, "process ") || got.Attempt != 0 {
			t.Errorf("the task ended as %s %+v, with the reference %q", got.State, got.Outcome, got.Ref)
		}
		if out := d.output(t, s, "tsk_short"); out != "out\nerr\n" {
			t.Errorf("its output is %q", out)
		}
	})
	t.Run("issue/5-2 a detached command outlives the daemon; with cancel external lashd does not end it but still reports its end", func(t *testing.T) {
		spec := apart("echo begun; until [ -e go ]; do sleep 0.02; done; echo gone on; exit 5")
		spec.Cancel = protocol.CancelElsewhere
		d.task(t, s, "tsk_long", spec)
		d.outputHas(t, s, "tsk_long", "begun")
		must[*protocol.TaskResult](t)(d.Tasks.Cancel(t.Context(), "cli_b", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: "tsk_long"}}))
		cwd := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: s})).Session.Cwd
		d = d.restart(whole, path)
		if got := d.readTask(t, s, "tsk_long").Task; got.State != protocol.TaskCancelRequested {
			t.Errorf("after a restart the task is %s %+v", got.State, got.Outcome)
		}
		if err := os.WriteFile(cwd+"/go", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		got := d.ended(t, s, "tsk_long")
		if got.State != protocol.TaskFailed || got.Outcome.Kind != protocol.TaskExited || *got.Outcome.ExitCode != 5 {
			t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
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
		{"with all its child processes", "sleep 1000 & echo begun; exec sleep 1000", protocol.TaskCancelled, protocol.TaskOutcome{Kind: protocol.TaskStopped, ExitCode: new(143), By: "cli_b"}, "begun\n"},
		{"as it likes", `trap "echo bye; exit 0" TERM; sleep 1000 & echo begun; wait`, protocol.TaskCompleted, protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: new(0)}, "begun\nbye\n"},
		{"or is killed", `trap "" TERM; echo begun; while :; do sleep 0.02; done`, protocol.TaskCancelled, protocol.TaskOutcome{Kind: protocol.TaskStopped, By: "cli_b"}, "begun\n"},
	} {
		t.Run("issue/5-2 a detached command ends when it is cancelled, "+c.name, func(t *testing.T) {
			id := protocol.TaskID(protocol.DigestOf([]byte(c.name)))
			d.task(t, s, id, apart(c.script))
			d.outputHas(t, s, id, "begun")
			must[*protocol.TaskResult](t)(d.Tasks.Cancel(t.Context(), "cli_b", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: id}}))
			got := d.ended(t, s, id)
			if diff := cmp.Diff(*got.Outcome, c.want); diff != "" || got.State != c.state {
				t.Errorf("the task ended as %s: %s", got.State, diff)
			}
			if out := d.output(t, s, id); out != c.output {
				t.Errorf("its output is %q, want %q", out, c.output)
			}
		})
	}
	t.Run("issue/5-2 a command without a process or an exit status is abandoned", func(t *testing.T) {
		d.task(t, s, "tsk_lost", apart("echo $$ >pid; sleep 1000"))
		cwd := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: s})).Session.Cwd
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
			t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
		}
	})
	// pidIn returns the process id that a command of a session printed.
	pidIn := func(t *testing.T, id protocol.SessionID) (pid int) {
		t.Helper()
		cwd := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.Cwd
		eventually(t, func() bool {
			text, err := os.ReadFile(cwd + "/pid")
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			return err == nil
		})
		if group, err := syscall.Getpgid(pid); err == nil { // with the shell that would still store the exit status
			t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL) }) // it should be gone already
		}
		return pid
	}
	gone := func(pid int) bool { // a zombie counts as gone
		stat, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		return err != nil || len(stat) == 0 || stat[0] == 'Z'
	}
	says := `echo $$ >.pid; mv .pid pid; exec sleep 1000`
	t.Run("issue/5-2 a detached command ends when its session is deleted, even against signals, unless only others may end it", func(t *testing.T) {
		of := map[string]int{}
		var all []protocol.SessionID
		others := apart(says)
		others.Cancel = protocol.CancelElsewhere
		for name, spec := range map[string]protocol.TaskSpec{"one": apart(says), "one that does not want to": apart(`trap "" TERM; ` + says), "that of others": others} {
			id := d.session(t)
			d.task(t, id, "tsk_mine", spec)
			of[name], all = pidIn(t, id), append(all, id)
		}
		before := d.outputs(t)
		for _, id := range all {
			must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		}
		for name, pid := range of {
			if gone(pid) == (name == "that of others") {
				t.Errorf("%s is gone: %v", name, gone(pid))
			}
		}
		if n := d.outputs(t); n != before-2*len(all) {
			t.Errorf("there are %d files of outputs, and were %d", n, before)
		}
	})
	t.Run("issue/5-2 the next start halts a detached command that a crash left of a deleted session, unless only others may end it", func(t *testing.T) {
		others := apart(says)
		others.Cancel = protocol.CancelElsewhere
		id, other := d.session(t), d.session(t)
		d.task(t, id, "tsk_mine", apart(says))
		d.task(t, other, "tsk_theirs", others)
		pid, their := pidIn(t, id), pidIn(t, other)
		d.halt()
		for _, id := range []protocol.SessionID{id, other} {
			must[persistence.Result](t)(d.store.Commit(t.Context(), &persistence.Commit{Session: id, Delete: true, AtMs: 1}))
		}
		d = d.restart(whole, path)
		eventually(t, func() bool { return gone(pid) })
		if gone(their) {
			t.Error("the command that only others may end is gone")
		}
	})
}
