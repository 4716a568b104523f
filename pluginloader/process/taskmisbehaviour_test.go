//go:build unix

package process_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// desk is a daemon with a plugin that misbehaves in a session, beside another session with the same plugins.
type desk struct {
	*builtintest.Daemon
	session, other protocol.SessionID
}

func newDesk(t *testing.T) *desk {
	with := only()
	with.Tasks = []string{"build"}
	good := config(t, "good", process.Contributions{Hooks: []process.Hook{{Name: process.Checkpoint}}})
	good.ID = "bystander"
	d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), begin(t, config(t, "good", with)), begin(t, good))
	return &desk{d, d.Session(t, nil), d.Session(t, nil)}
}

// task makes a task, as its plugin would, or a client.
func (d *desk) task(t *testing.T, id protocol.TaskID, spec protocol.TaskSpec) {
	t.Helper()
	spec.Kind = protocol.TaskOther
	builtintest.Must(d.Tasks.Start(t.Context(), "", &protocol.TaskStartParams{SessionID: d.session, TaskID: id, Spec: spec}))(t)
}

// misused lists misuses of tasks with the plugin's answer and the final state of the task.
var misused = []struct {
	row  string
	use  func(*testing.T, *desk) (told string)
	want string
	came protocol.TaskState
	kind protocol.TaskEnd
}{
	{"works without end at one that is cancelled", func(t *testing.T, d *desk) string {
		d.task(t, "tsk_x", protocol.TaskSpec{Recovery: protocol.RecoverOwner, Plugin: "notes", Handler: "build", Payload: json.RawMessage(`"lasts"`)})
		return hosted(t, d.Daemon, d.session, "taskCancel", `{"taskId":"tsk_x"}`)
	}, `"state":"cancelRequested"`, protocol.TaskCancelled, protocol.TaskStopped},
	{"works without end at one that has a time limit", func(t *testing.T, d *desk) string {
		d.task(t, "tsk_x", protocol.TaskSpec{Recovery: protocol.RecoverOwner, TimeoutMs: 50, Plugin: "notes", Handler: "build", Payload: json.RawMessage(`"lasts"`)})
		return ""
	}, "", protocol.TaskFailed, protocol.TaskStopped},
	{"dies during the task", func(t *testing.T, d *desk) string {
		d.task(t, "tsk_x", protocol.TaskSpec{Recovery: protocol.RecoverOwner, Plugin: "notes", Handler: "build", Payload: json.RawMessage(`"dies"`)})
		return ""
	}, "", protocol.TaskAbandoned, protocol.TaskLost},
	{"completes one twice", func(t *testing.T, d *desk) string {
		r := register(t, d.Daemon, d.session, "tsk_x", "external")
		for _, value := range []string{"1", "2"} {
			hosted(t, d.Daemon, d.session, "taskComplete", fmt.Sprintf(`{"taskId":%q,"outcome":{"kind":"completed","value":%s}}`, r.Task.ID, value))
		}
		return hosted(t, d.Daemon, d.session, "taskComplete", `{"taskId":"tsk_x","outcome":{"kind":"failed"}}`)
	}, `"value":1`, protocol.TaskCompleted, protocol.TaskDone},
	{"reports on an ended task", func(t *testing.T, d *desk) string {
		d.task(t, "tsk_x", protocol.TaskSpec{Recovery: protocol.RecoverExternal, Plugin: "notes", Events: []protocol.TaskEventType{{Name: "seen"}}})
		hosted(t, d.Daemon, d.session, "taskComplete", `{"taskId":"tsk_x","outcome":{"kind":"completed"}}`)
		return hosted(t, d.Daemon, d.session, "taskTell", `{"taskId":"tsk_x","name":"seen"}`)
	}, `"kind":"taskEnded"`, protocol.TaskCompleted, protocol.TaskDone},
	{"speaks for one of another plugin", func(t *testing.T, d *desk) (told string) {
		d.task(t, "tsk_x", protocol.TaskSpec{Recovery: protocol.RecoverExternal, Plugin: "bystander", Events: []protocol.TaskEventType{{Name: "seen"}}})
		for method, params := range map[string]string{
			"taskTell": `"name":"seen"`, "taskTransition": `"state":"idle"`, "taskComplete": `"outcome":{"kind":"failed"}`,
		} {
			if told = hosted(t, d.Daemon, d.session, method, `{"taskId":"tsk_x",`+params+`}`); !strings.Contains(told, `"kind":"denied"`) {
				return method + ": " + told
			}
		}
		return told
	}, `"kind":"denied"`, protocol.TaskRunning, ""},
	{"reports a different result a second time", func(t *testing.T, d *desk) string {
		d.task(t, "tsk_x", protocol.TaskSpec{Recovery: protocol.RecoverExternal, Plugin: "notes", Events: []protocol.TaskEventType{{Name: "seen"}}})
		hosted(t, d.Daemon, d.session, "taskTell", `{"taskId":"tsk_x","name":"seen","key":"a","payload":1}`)
		return hosted(t, d.Daemon, d.session, "taskTell", `{"taskId":"tsk_x","name":"seen","key":"a","payload":2}`)
	}, `"kind":"conflict"`, protocol.TaskRunning, ""},
	{"tells without end", func(t *testing.T, d *desk) string {
		d.task(t, "tsk_x", protocol.TaskSpec{Recovery: protocol.RecoverExternal, Plugin: "notes", Events: []protocol.TaskEventType{{Name: "seen"}}})
		args := `{"host":"host/taskTell","times":1000,"params":{"taskId":"tsk_x","name":"seen"}}`
		r := builtintest.Must(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: d.session, Name: "note", Args: json.RawMessage(args)}))(t)
		var told, refused, seconds int
		if _, err := fmt.Sscan(r.Output.Text, &told, &refused, &seconds); err != nil || told > 100*(seconds+2) || told+refused != 1000 {
			return fmt.Sprintf("%d events in %d s, and %d were too many: %v", told, seconds, refused, err)
		}
		return "held"
	}, "held", protocol.TaskRunning, ""},
}

// TestTasksOfWhoMisbehaves has plugins misuse tasks beside a session that works with the same plugins.
func TestTasksOfWhoMisbehaves(t *testing.T) {
	for _, c := range misused {
		t.Run("reliability/P14 plugin/HC-13 a plugin "+c.row, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			beside := make(chan time.Duration, 1)
			go func() {
				began := time.Now()
				d.Turn(t, d.other, "go on")
				beside <- time.Since(began)
			}()
			if told := c.use(t, d); !strings.Contains(told, c.want) {
				t.Errorf("it got %s, want %s", told, c.want)
			}
			if took := <-beside; took > bound {
				t.Errorf("a turn beside it takes %v", took)
			}
			var got protocol.Task
			if c.came.Final() {
				got = finished(t, d.Daemon, d.session, "tsk_x")
			} else {
				got = builtintest.Must(d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: d.session, TaskID: "tsk_x"}}))(t).Task
			}
			if got.State != c.came || c.kind != "" && got.Outcome.Kind != c.kind {
				t.Errorf("the task is %s %+v, want %s, %s", got.State, got.Outcome, c.came, c.kind)
			}
		})
	}
}
