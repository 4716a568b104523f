//go:build unix

package process_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// working is a plugin with task handlers, whose tool sends any request to the daemon.
func working(t *testing.T, uses ...process.Capability) (process.Config, *builtintest.Daemon, protocol.SessionID) {
	t.Helper()
	with := only()
	with.Tasks = []string{"build"}
	c := config(t, "good", with)
	if len(uses) > 0 {
		c.Uses = uses
	}
	d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), begin(t, c))
	return c, d, d.Session(t, nil)
}

// hosted has the tool of a session ask the daemon for something, and gives the answer.
func hosted(t *testing.T, d *builtintest.Daemon, id protocol.SessionID, method, params string) string {
	t.Helper()
	return asks(t, d, id, "host/"+method, params)
}

type registration struct {
	Task     protocol.Task `json:"task"`
	Grant    string        `json:"grant"`
	Existing bool          `json:"existing"`
}

func register(t *testing.T, d *builtintest.Daemon, id protocol.SessionID, task, recovery string) (r registration) {
	t.Helper()
	text := hosted(t, d, id, "taskRegister", fmt.Sprintf(`{"taskId":%q,"spec":{"kind":"other","recovery":%q,"signals":[{"name":"add"}]}}`, task, recovery))
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("registered: %s", text)
	}
	return r
}

func finished(t *testing.T, d *builtintest.Daemon, id protocol.SessionID, task protocol.TaskID) protocol.Task {
	t.Helper()
	r := builtintest.Must(d.Tasks.Wait(t.Context(), "", &protocol.TaskWaitParams{SessionID: id, TaskIDs: []protocol.TaskID{task}, TimeoutMs: 10_000}))(t)
	if r.TimedOut {
		t.Fatalf("task %s is %s", task, r.Live[0].State)
	}
	return r.Settled[0]
}

func TestRegisteredTasks(t *testing.T) {
	t.Run("plugin/HC-13 a task that the process runs by itself ends with the reported outcome, and its grant ends too", func(t *testing.T) {
		c, d, id := working(t)
		r := register(t, d, id, "tsk_a", "ownerBound")
		if r.Grant == "" || r.Task.Spec.Plugin != "notes" || r.Task.State != protocol.TaskRunning {
			t.Fatalf("registered: %+v", r)
		}
		if again := register(t, d, id, "tsk_a", "ownerBound"); !again.Existing || again.Grant != "" {
			t.Errorf("registered again: %+v", again)
		}
		builtintest.Must(d.Tasks.Signal(t.Context(), "cli_a", &protocol.TaskSignalParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: "tsk_a"}, Name: "add", Payload: json.RawMessage(`2`)}))(t)
		if got := found(filepath.Join(c.DataDir, "task-signal.tsk_a")); got != `{"name":"add","payload":2}` {
			t.Errorf("it was sent %s", got)
		}
		idle := hosted(t, d, id, "taskTransition", fmt.Sprintf(`{"grant":%q,"taskId":"tsk_a","state":"idle"}`, r.Grant))
		if !strings.Contains(idle, `"state":"idle"`) {
			t.Errorf("it is idle: %s", idle)
		}
		wrong := hosted(t, d, id, "taskComplete", fmt.Sprintf(`{"grant":%q,"taskId":"tsk_a","outcome":{"kind":"abandoned"}}`, r.Grant))
		other := hosted(t, d, id, "taskComplete", `{"taskId":"tsk_a","outcome":{"kind":"completed"}}`)
		if !strings.Contains(wrong, "/outcome/kind") || !strings.Contains(other, "refused") {
			t.Errorf("ended as what it cannot be: %s; with the grant of another call: %s", wrong, other)
		}
		done := hosted(t, d, id, "taskComplete", fmt.Sprintf(`{"grant":%q,"taskId":"tsk_a","outcome":{"kind":"completed","value":7}}`, r.Grant))
		if got := finished(t, d, id, "tsk_a"); !strings.Contains(done, `"state":"completed"`) || got.State != protocol.TaskCompleted || string(got.Outcome.Value) != "7" {
			t.Errorf("the process got %s, and the task is %s %+v", done, got.State, got.Outcome)
		}
		var late string
		for until := time.Now().Add(patience); !strings.Contains(late, "denied") && time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			late = hosted(t, d, id, "taskList", fmt.Sprintf(`{"grant":%q}`, r.Grant))
		}
		if !strings.Contains(late, "denied") {
			t.Errorf("the grant outlives the task: %s", late)
		}
	})
	t.Run("plugin/HC-13 a process gets the request to end a task, and a crash loses only its own tasks", func(t *testing.T) {
		c, d, id := working(t)
		register(t, d, id, "tsk_asked", "ownerBound")
		register(t, d, id, "tsk_own", "ownerBound")
		register(t, d, id, "tsk_elsewhere", "external")
		hosted(t, d, id, "taskCancel", `{"taskId":"tsk_asked","reason":"enough"}`)
		found(filepath.Join(c.DataDir, "task-cancel.tsk_asked"))
		if got := finished(t, d, id, "tsk_asked"); got.State != protocol.TaskCancelled || got.Outcome.Message != "enough" {
			t.Errorf("the one that is asked to end is %s %+v", got.State, got.Outcome)
		}
		for _, p := range marked(c.Nonce, c.ID) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		if got := finished(t, d, id, "tsk_own"); got.State != protocol.TaskAbandoned || got.Outcome.Evidence == nil || !strings.Contains(got.Outcome.Evidence.Reason, "process") {
			t.Errorf("its own is %s %+v", got.State, got.Outcome)
		}
		if got := hosted(t, d, id, "taskComplete", `{"taskId":"tsk_elsewhere","outcome":{"kind":"completed"}}`); !strings.Contains(got, `"state":"completed"`) {
			t.Errorf("the next process completes the one that is elsewhere: %s", got)
		}
	})
	t.Run("plugin/HC-13 tasks that no process could resume are rejected", func(t *testing.T) {
		_, d, id := working(t)
		for params, want := range map[string]string{
			`{"spec":{"kind":"other","recovery":"rerunnable"}}`:                               "/spec/recovery",
			`{"spec":{"kind":"other"}}`:                                                       "/spec/recovery",
			`{"spec":{"kind":"command","recovery":"ownerBound","command":{"script":"true"}}}`: "/spec/recovery",
			`{"sessionId":"ses_none","spec":{"kind":"other","recovery":"external"}}`:          "refused",
		} {
			if got := hosted(t, d, id, "taskRegister", params); !strings.Contains(got, want) {
				t.Errorf("%s: %s", params, got)
			}
		}
	})
}

func TestHandledTasks(t *testing.T) {
	lasts := func(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) {
		t.Helper()
		text := hosted(t, d, id, "taskStart", `{"taskId":"tsk_a","spec":{"kind":"other","recovery":"ownerBound","handler":"build","payload":"lasts"}}`)
		if !strings.Contains(text, `"state":"running"`) {
			t.Errorf("started: %s", text)
		}
	}
	for _, c := range []struct {
		recovery, payload string
		state             protocol.TaskState
		attempts          int
	}{
		{"rerunnable", "works", protocol.TaskCompleted, 1}, {"rerunnable", "fails", protocol.TaskFailed, 1},
		{"rerunnable", "dies once", protocol.TaskCompleted, 2}, {"rerunnable", "dies", protocol.TaskAbandoned, 3},
		{"ownerBound", "dies", protocol.TaskAbandoned, 1},
	} {
		t.Run(fmt.Sprintf("runtime/B02 the process of a task which is %s %s", c.recovery, c.payload), func(t *testing.T) {
			t.Parallel()
			_, d, id := working(t)
			// Not by the process itself, which may die before it is answered.
			spec := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.TaskRecovery(c.recovery), Plugin: "notes", Handler: "build", Payload: json.RawMessage(strconv.Quote(c.payload))}
			builtintest.Must(d.Tasks.Start(t.Context(), "", &protocol.TaskStartParams{SessionID: id, TaskID: "tsk_a", Spec: spec}))(t)
			if got := finished(t, d, id, "tsk_a"); got.State != c.state || got.Attempt != c.attempts {
				t.Errorf("it is %s after %d attempts: %+v", got.State, got.Attempt, got.Outcome)
			}
		})
	}
	t.Run("plugin/HC-14 plugin/HC-16 a process validates its handles and transfers tasks only to sessions below its own", func(t *testing.T) {
		t.Parallel()
		_, d, id := working(t)
		lasts(t, d, id)
		cwd := builtintest.Must(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))(t).Session.Cwd
		other := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: cwd}))(t).SessionID
		for _, c := range []struct{ method, params, want string }{
			{"validateHandles", `{"taskIds":["tsk_a"]}`, "{}"}, {"validateHandles", `{"taskIds":["tsk_a","tsk_none"]}`, "tsk_none"},
			{"transferHandles", `{"taskIds":[],"to":"ses_none"}`, `{"data":null}`}, {"taskStart", `{"spec":{"kind":"other","recovery":"ownerBound","handler":"none"}}`, "/spec/handler"},
			{"taskTell", `{"taskId":"tsk_a","name":"seen"}`, "/name"}, {"taskAwait", `{"taskIds":["tsk_a"],"timeoutMs":1}`, `"timedOut":true`},
			{"taskList", `{}`, `"taskId":"tsk_a"`}, {"taskRead", `{"taskId":"tsk_a"}`, `"kind":"started"`}, {"taskOutput", `{"taskId":"tsk_a"}`, `"size":0`},
			{"taskCancelAll", `{"keep":["tsk_a"]}`, `{"data":[]}`},
		} {
			if got := hosted(t, d, id, c.method, c.params); !strings.Contains(got, c.want) {
				t.Errorf("%s %s: %s", c.method, c.params, got)
			}
		}
		_, less, own := working(t, process.UsesTasks)
		lasts(t, less, own)
		if got := hosted(t, less, own, "transferHandles", fmt.Sprintf(`{"taskIds":["tsk_a"],"to":%q}`, less.Session(t, nil))); !strings.Contains(got, "denied") {
			t.Errorf("to a session that does not work for it: %s", got)
		}
		if got := hosted(t, less, own, "transferHandles", fmt.Sprintf(`{"taskIds":["tsk_a"],"to":%q}`, below(t, less, own))); !strings.Contains(got, `"data":[{`) {
			t.Errorf("to one that does: %s", got)
		}
		if got := hosted(t, d, id, "transferHandles", fmt.Sprintf(`{"taskIds":["tsk_a"],"to":%q}`, other)); !strings.Contains(got, "denied") {
			t.Errorf("with the capability lifecycle, too: %s", got)
		}
	})
}

func TestTasksOfSandboxed(t *testing.T) {
	t.Run("plugin/HC-02 runtime/K05 reliability/T10 a sandboxed plugin cannot make anything run outside its sandbox", func(t *testing.T) {
		t.Parallel()
		here, err := filepath.EvalSymlinks(filepath.Dir(builtintest.Must(os.Executable())(t)))
		if err != nil {
			t.Fatal(err)
		}
		with := only()
		with.Tasks = []string{"build"}
		c := config(t, "good", with)
		c.Confine = &child.Confinement{Root: c.Dir, Data: c.DataDir, Sandbox: &child.Sandbox{ReadPaths: []string{here}}}
		d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), begin(t, c))
		id := d.Session(t, nil)
		mark := filepath.Join(t.TempDir(), "escaped")
		shell := &protocol.TaskShell{Script: "read x; eval \"$x\""}
		of := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: shell}
		builtintest.Must(d.Tasks.Start(t.Context(), "", &protocol.TaskStartParams{SessionID: id, TaskID: "tsk_user", Spec: of}))(t)
		for _, c := range []struct{ method, params string }{
			{"taskStart", `{"spec":{"kind":"command","recovery":"ownerBound","command":{"script":"touch %s"}}}`},
			{"taskStart", `{"spec":{"kind":"command","recovery":"rerunnable","command":{"script":"touch %s","detach":true}}}`},
			{"monitorStart", `{"spec":{"monitorId":"m","command":"touch %s"}}`},
			{"taskSignal", `{"taskId":"tsk_user","name":"stdin","payload":{"text":"touch %s\n"}}`},
		} {
			if got := hosted(t, d, id, c.method, fmt.Sprintf(c.params, mark)); !strings.Contains(got, "outside of the plugin's sandbox") {
				t.Errorf("%s: %s", c.method, got)
			}
		}
		if got := hosted(t, d, id, "taskStart", `{"taskId":"tsk_own","spec":{"kind":"other","recovery":"ownerBound","handler":"build","payload":"works"}}`); !strings.Contains(got, `"state":"running"`) {
			t.Errorf("what it runs itself: %s", got)
		}
		finished(t, d, id, "tsk_own")
		builtintest.Must(d.Tasks.Cancel(t.Context(), "", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: "tsk_user"}}))(t)
		finished(t, d, id, "tsk_user")
		if _, err := os.Stat(mark); !os.IsNotExist(err) {
			t.Errorf("something was run: %v", err)
		}
	})
}
