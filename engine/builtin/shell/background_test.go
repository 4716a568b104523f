//go:build unix

package shell_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/shell"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// result is the structured result of a tool about a task.
type result struct {
	Task    protocol.TaskID
	State   protocol.TaskState
	Outcome *protocol.TaskOutcome
	text    string
	failure *protocol.ToolFailure
}

type desk struct {
	*builtintest.Daemon
	session protocol.SessionID
}

func newDesk(t *testing.T, calls ...scripted.Call) *desk {
	replies := []scripted.Reply{{Text: "done"}}
	for _, c := range calls {
		replies = append([]scripted.Reply{{ToolCalls: []scripted.Call{c}}}, replies...)
	}
	model := scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "go on"}, Replies: replies}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "noted"}}},
	})
	d := builtintest.Start(t, t.TempDir(), 0, model, shell.New(shell.Config{Environ: os.Environ(), Nonce: t.Name()}))
	return &desk{d, d.Session(t, nil)}
}

// call calls a tool without a model. If the result is about one task, it has the task's id.
func (d *desk) call(t *testing.T, name, args string) (r result) {
	t.Helper()
	got := builtintest.Must(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: d.session, Name: name, Args: json.RawMessage(args)}))(t)
	if len(got.Output.Value) > 0 && got.Output.Value[0] == '{' {
		if err := json.Unmarshal(got.Output.Value, &r); err != nil {
			t.Fatal(err)
		}
	}
	r.text, r.failure = got.Output.Text, got.Output.Failure
	return r
}

func (d *desk) task(t *testing.T, id protocol.TaskID) protocol.Task {
	t.Helper()
	return builtintest.Must(d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: d.session, TaskID: id}}))(t).Task
}

func TestBackground(t *testing.T) {
	d := newDesk(t)
	t.Run("runtime/K02 a command continues after its call and can be written to and read", func(t *testing.T) {
		r := d.call(t, "start_command", `{"command":"echo ready; while read x; do echo got $x; done; exit 3","label":"the reader"}`)
		if r.State != protocol.TaskRunning || !strings.HasPrefix(r.text, "ready\n[Task tsk_") {
			t.Fatalf("it answers %+v", r)
		}
		spec := d.task(t, r.Task).Spec
		if spec.Recovery != protocol.RecoverOwner || spec.Close != protocol.CloseCancel || spec.Label != "the reader" {
			t.Errorf("it is started as %+v", spec)
		}
		id := string(r.Task)
		w := d.call(t, "write_stdin", `{"task":"`+id+`","text":"one\n"}`)
		if !strings.Contains(w.text, "\ngot one\n") || strings.Contains(w.text, "ready") {
			t.Errorf("what came after the text is given as %q", w.text)
		}
		w = d.call(t, "write_stdin", `{"task":"`+id+`","text":"two\n","closeStdin":true}`)
		read := d.call(t, "read_output", `{"task":"`+id+`","offset":6,"waitMs":30000}`)
		if read.State != protocol.TaskFailed || !strings.Contains(read.text, "got one\ngot two\n") || !strings.HasSuffix(read.text, "exited with code 3.]\n") {
			t.Errorf("it has ended as %s: %q, after %q", read.State, read.text, w.text)
		}
		if tail := d.call(t, "read_output", `{"task":"`+id+`","offset":-4}`); !strings.Contains(tail.text, "]\ntwo\n[") {
			t.Errorf("its end is %q", tail.text)
		}
		if w := d.call(t, "write_stdin", `{"task":"`+id+`","text":"x"}`); w.failure == nil {
			t.Errorf("what is over is written to: %+v", w)
		}
	})
	t.Run("runtime/K02 a command that ends at once is reported as ended", func(t *testing.T) {
		if r := d.call(t, "start_command", `{"command":"echo out; exit 4"}`); r.State != protocol.TaskFailed || !strings.HasPrefix(r.text, "out\n") {
			t.Errorf("it answers %+v", r)
		}
	})
	t.Run("runtime/K02 a command gets a terminal on request", func(t *testing.T) {
		if r := d.call(t, "start_command", `{"command":"stty size","pty":true}`); !strings.HasPrefix(r.text, "24 80\r\n") {
			t.Errorf("it answers %+v", r)
		}
	})
	t.Run("runtime/K06 running tasks are listed, ended ones on request, and a stopped task has ended", func(t *testing.T) {
		r := d.call(t, "start_command", `{"command":"echo begun; sleep 1000"}`)
		other := &desk{d.Daemon, d.Session(t, nil)}
		theirs := other.call(t, "start_command", `{"command":"echo theirs; sleep 1000"}`)
		listed := d.call(t, "list_processes", `{}`).text
		if !strings.Contains(listed, string(r.Task)+" command running: echo begun; sleep 1000\n") || strings.Contains(listed, string(theirs.Task)) || strings.Count(listed, "\n") != 1 {
			t.Errorf("there runs %q", listed)
		}
		if other.call(t, "stop_command", `{"task":"`+string(r.Task)+`"}`).failure == nil {
			t.Error("a session stops a task that it does not see")
		}
		stopped := d.call(t, "stop_command", `{"task":"`+string(r.Task)+`","reason":"enough"}`)
		if stopped.State != protocol.TaskCancelled || stopped.Outcome.Kind != protocol.TaskStopped || stopped.Outcome.Message != "enough" {
			t.Errorf("it is %+v", stopped)
		}
		if again := d.call(t, "stop_command", `{"task":"`+string(r.Task)+`"}`); again.failure != nil || again.State != protocol.TaskCancelled {
			t.Errorf("stopped again it is %+v", again)
		}
		if over := d.call(t, "list_processes", `{"over":true}`).text; !strings.Contains(over, string(r.Task)+" command stopped by") {
			t.Errorf("there were %q", over)
		}
	})
	for _, c := range []struct{ tool, args string }{
		{"start_command", `{"command":" "}`}, {"start_command", `{"command":"x","workdir":"/"}`}, {"start_command", `{"command":"x","timeoutMs":-1}`},
		{"start_command", `{"command":"x","rerunnable":true,"detach":true}`}, {"read_output", `{"task":"x","limit":-1}`},
		{"read_output", `{"task":"unknown"}`}, {"write_stdin", `{"task":"unknown","text":"x"}`}, {"stop_command", `{"task":"unknown"}`},
	} {
		t.Run("runtime/K06 invalid arguments are rejected, "+c.tool+" "+c.args, func(t *testing.T) {
			if r := d.call(t, c.tool, c.args); r.failure == nil || r.failure.Class != protocol.FailInvalidRequest {
				t.Errorf("it answers %+v", r)
			}
		})
	}
}

func TestWokenByCommand(t *testing.T) {
	t.Run("issue/5-2 the end of a command wakes the session on request", func(t *testing.T) {
		d := newDesk(t, scripted.Call{Name: "start_command", Args: json.RawMessage(`{"command":"read x; exit 4","label":"the build","wake":true}`)})
		d.Turn(t, d.session, "go on")
		id := builtintest.Must(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: d.session}))(t).Data[0].ID
		d.call(t, "write_stdin", `{"task":"`+string(id)+`","closeStdin":true}`)
		builtintest.Must(d.Tasks.Wait(t.Context(), "", &protocol.TaskWaitParams{SessionID: d.session, TaskIDs: []protocol.TaskID{id}}))(t)
		builtintest.Must(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: d.session}))(t)
		turns := builtintest.Must(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: d.session}))(t).Data
		if len(turns) != 2 || turns[0].Output == nil || turns[0].Output.Safe != "noted" {
			t.Errorf("turns: %+v", turns)
		}
	})
}
