package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

// reader reads the output of a task piece by piece.
type reader struct {
	peer *peer
	task protocol.TaskParams
	text strings.Builder
	at   int64 // offset of the next piece
	last protocol.TaskOutputResult
}

// more reads the next piece, which must not cut a character.
func (r *reader) more(limit int) {
	t := r.peer.t
	t.Helper()
	r.last = ask[protocol.TaskOutputResult](r.peer, "task/output", protocol.TaskOutputParams{TaskParams: r.task, Offset: r.at, Limit: limit})
	if cut := strings.ContainsRune(r.last.Text, utf8.RuneError); cut || r.last.Offset != r.at || r.last.NextOffset-r.at != int64(len(r.last.Text)) {
		t.Fatalf("issue/5-1 asked for offset %d, got %d bytes from %d to %d; cut characters: %t", r.at, len(r.last.Text), r.last.Offset, r.last.NextOffset, cut)
	}
	r.text.WriteString(r.last.Text)
	r.at = r.last.NextOffset
}

// until reads on until the text contains want.
func (r *reader) until(want string) {
	r.peer.t.Helper()
	eventually(r.peer.t, fmt.Sprintf("%s prints %q", r.task.TaskID, want), func() error {
		if r.more(0); !strings.Contains(r.text.String(), want) {
			return fmt.Errorf("output so far: %q", r.text.String())
		}
		return nil
	})
}

// same checks that everything read so far is still at the same place.
func (r *reader) same(p *peer) {
	p.t.Helper()
	again := &reader{peer: p, task: r.task}
	for again.at < r.at {
		again.more(int(min(r.at-again.at, 100_003)))
	}
	if again.text.String() != r.text.String() {
		p.t.Errorf("issue/5-1 the first %d bytes of %s have changed", r.at, r.task.TaskID)
	}
	r.peer = p
}

type startsCommand struct {
	Command string `json:"command"`
	PTY     bool   `json:"pty,omitempty"`
	Detach  bool   `json:"detach,omitempty"`
	Wake    bool   `json:"wake,omitempty"`
}

// background has the model start a background command.
func (p *peer) background(id protocol.SessionID, c startsCommand) *reader {
	p.t.Helper()
	var r struct{ Task protocol.TaskID }
	out := p.calls(id, "start_command", mustArgs(c))
	if err := json.Unmarshal(out.Value, &r); err != nil || r.Task == "" {
		p.t.Fatalf("start_command returned %+v, %v", out, err)
	}
	return &reader{peer: p, task: protocol.TaskParams{SessionID: id, TaskID: r.Task}}
}

func (r *reader) read() protocol.Task {
	r.peer.t.Helper()
	return ask[protocol.TaskReadResult](r.peer, "task/read", protocol.TaskReadParams{TaskParams: r.task}).Task
}

func (r *reader) wait() protocol.Task {
	r.peer.t.Helper()
	ask[protocol.TaskWaitResult](r.peer, "task/wait", protocol.TaskWaitParams{SessionID: r.task.SessionID, TaskIDs: []protocol.TaskID{r.task.TaskID}})
	return r.read()
}

// TestCommandsOutliveADaemon starts a command with a terminal and a detached one, and kills the
// daemon.
func TestCommandsOutliveADaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "allow")
	d := w.serve()
	p := w.dial("")
	id := p.session(w.home)
	bound, apart := "LASHD_E2E_TERMINAL="+w.dir, "LASHD_E2E_APART="+w.dir
	terminal := p.background(id, startsCommand{PTY: true, Wake: true, Command: bound + ` exec sh -c '
		setsid sleep 1000 & (trap "" HUP TERM INT; sleep 1000) & test -t 0 && echo a terminal; while read x; do echo got $x; done'`})
	detached := p.background(id, startsCommand{Detach: true, Wake: true, Command: apart + ` exec sh -c '
		while [ ! -e stop ]; do echo line $((i+=1)); sleep 0.02; done; echo end; exit 7'`})
	terminal.until("a terminal\r\n")
	w.lashd("task", "signal", string(terminal.task.TaskID), "stdin", `{"text":"hello\n"}`)
	terminal.until("got hello\r\n")
	detached.until("line 3\n")
	if n, m := len(marked(bound)), len(marked(apart)); n < 3 || m == 0 {
		t.Errorf("running: %d processes of the terminal, %d detached", n, m)
	}
	d.kill()
	d = w.serve()
	p = w.dial("")
	t.Run("runtime/K01 runtime/K02 the process tree of a terminal is killed, and its task is abandoned with evidence and output", func(t *testing.T) {
		unmarked(t, bound)
		terminal.same(p)
		got := terminal.wait()
		if e := got.Outcome.Evidence; got.State != protocol.TaskAbandoned || e == nil || e.Writer != protocol.WriterSweep || e.Attempts != 1 || e.Incarnation == "" {
			t.Errorf("runtime/B02 the task is %s with %+v", got.State, got.Outcome)
		}
		if out := w.lashd("task", "output", "--offset=-11", string(terminal.task.TaskID)); out != "got hello\r\n" {
			t.Errorf("its output ends with %q", out)
		}
		_, err := try[protocol.TaskResult](p, "task/signal", protocol.TaskSignalParams{TaskParams: terminal.task, Name: "closeStdin"})
		if _, kind := refusal(err); kind != protocol.KindTaskEnded {
			t.Errorf("a signal to it returns %v", err)
		}
	})
	t.Run("runtime/K02 runtime/K06 the next daemon can stop a detached command, and so can the one after it", func(t *testing.T) {
		stubborn := "LASHD_E2E_STUBBORN=" + w.dir
		r := p.background(id, startsCommand{Detach: true, Command: stubborn + ` exec sh -c 'trap "" TERM; echo begun; sleep 1000 & while :; do sleep 0.02; done'`})
		r.until("begun\n")
		w.lashd("task", "cancel", "--reason", "enough", string(r.task.TaskID))
		d.kill()
		d = w.serve()
		p = w.dial("")
		r.same(p)
		if got := r.wait(); got.State != protocol.TaskCancelled || got.Outcome.Kind != protocol.TaskStopped || got.Outcome.By != got.CancelRequested.By || got.CancelRequested.Reason != "enough" {
			t.Errorf("it ended as %s, with %+v", got.State, got.Outcome)
		}
		unmarked(t, stubborn)
	})
	t.Run("runtime/K02 runtime/B02 a detached command continues, is found again, and keeps its outcome", func(t *testing.T) {
		detached.same(p)
		before := detached.at
		if got := detached.read(); got.State != protocol.TaskRunning || !strings.HasPrefix(got.Ref, "process ") || got.Attempt != 0 {
			t.Errorf("the task is %+v", got)
		}
		detached.until(fmt.Sprintf("line %d\n", strings.Count(detached.text.String(), "\n")+3))
		if out := p.calls(id, "list_processes", `{}`); !strings.Contains(out.Text, string(detached.task.TaskID)) || strings.Contains(out.Text, string(terminal.task.TaskID)) {
			t.Errorf("runtime/K06 the model reads these running commands: %s", out.Text)
		}
		w.write(filepath.Join(w.work, "stop"), "")
		if got := detached.wait(); got.State != protocol.TaskFailed || got.Outcome.Kind != protocol.TaskExited || *got.Outcome.ExitCode != 7 {
			t.Errorf("it ended as %s, with %+v", got.State, got.Outcome)
		}
		if detached.until("end\n"); detached.at <= before || !strings.HasSuffix(detached.text.String(), "\nend\n") {
			t.Errorf("its output ends with %.40q", detached.text.String()[before:])
		}
		unmarked(t, apart)
	})
	ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: id})
	woken := map[string]int{}
	for _, e := range w.replay(id) {
		if e.Type == protocol.EventTurnAccepted {
			for _, c := range e.Causes {
				woken[c.Origin]++
			}
		}
	}
	if len(woken) != 2 || woken[string(terminal.task.TaskID)] != 1 || woken[string(detached.task.TaskID)] != 1 {
		t.Errorf("runtime/B06 the session was woken by %v, want each once", woken)
	}
	d.stop()
	db := w.database("ro")
	if err := errors.Join((&inspection{db: db, dir: w.dir}).all(), over(db)); err != nil {
		t.Error(err)
	}
}

// TestOutputOverSIGKILL kills daemons while commands print megabytes of multi-byte characters and a
// client reads them.
func TestOutputOverSIGKILL(t *testing.T) {
	for _, recovery := range []protocol.TaskRecovery{protocol.RecoverOwner, protocol.RecoverRerun} {
		t.Run("runtime/B02 issue/5-1 output that was read before a kill is unchanged after it: "+string(recovery), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "allow")
			d := w.serve()
			p := w.dial("")
			r := &reader{peer: p, task: protocol.TaskParams{SessionID: p.session(w.home), TaskID: "tsk_floods"}}
			ask[protocol.TaskResult](p, "task/start", protocol.TaskStartParams{SessionID: r.task.SessionID, TaskID: r.task.TaskID, Spec: protocol.TaskSpec{
				Kind: protocol.TaskCommand, Recovery: recovery, Command: &protocol.TaskShell{
					Script: `while [ ! -e stop ]; do yes 'σύννεφα 雲' | head -n 20000; done`, Env: map[string]string{"LASHD_E2E_FLOODS": w.dir},
				},
			}})
			for r.at < 3<<20 {
				r.more(1 << 20)
			}
			d.kill()
			size := r.last.Size
			d = w.serve()
			p = w.dial("")
			w.write(filepath.Join(w.work, "stop"), "")
			r.same(p)
			got := r.wait()
			if again := recovery == protocol.RecoverRerun; again != (got.State == protocol.TaskCompleted) || !again && got.State != protocol.TaskAbandoned {
				t.Errorf("the task is %s with %+v", got.State, got.Outcome)
			}
			end := ask[protocol.TaskOutputResult](p, "task/output", protocol.TaskOutputParams{TaskParams: r.task, Offset: -1})
			if !end.Ended || end.Size < size || end.NextOffset != end.Size {
				t.Errorf("at the end the output is %+v; %d bytes were printed", end, size)
			}
			unmarked(t, "LASHD_E2E_FLOODS="+w.dir)
			d.stop()
		})
	}
}

// TestOutputOfHalfACharacter checks that lash task output does not wait for the rest of a character.
func TestOutputOfHalfACharacter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "allow")
	w.serve()
	p := w.dial("")
	id := p.session(w.home)
	ask[protocol.TaskResult](p, "task/start", protocol.TaskStartParams{SessionID: id, TaskID: "tsk_half", Spec: protocol.TaskSpec{
		Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: `printf 'x\303'; exec sleep 1000`},
	}})
	eventually(t, "complete characters are printed", func() error {
		if out := w.lashd("task", "output", "tsk_half"); out != "x" {
			return fmt.Errorf("printed %q", out)
		}
		return nil
	})
}
