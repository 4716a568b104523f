package monitor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/monitor"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// calling returns a model that makes these calls in the first turn, one per reply, and says "noted" in every later turn.
func calling(calls ...scripted.Call) *builtintest.Recorder {
	var replies []scripted.Reply
	for _, c := range calls {
		replies = append(replies, scripted.Reply{ToolCalls: []scripted.Call{c}})
	}
	return &builtintest.Recorder{Provider: scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Replies: append(replies, scripted.Reply{Text: "done"})}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "noted"}}},
	})}
}

func call(name, args string) scripted.Call {
	return scripted.Call{Name: name, Args: json.RawMessage(args)}
}

func TestTools(t *testing.T) {
	t.Run("runtime/B10 a monitor that the model starts wakes it after its turn", func(t *testing.T) {
		model := calling(call("start_monitor", `{"id":"build","command":"echo it is built; exec sleep 600"}`))
		d := builtintest.Start(t, t.TempDir(), 0, model, monitor.Factory{})
		id := d.Session(t, nil)
		d.Turn(t, id, "tell me when it is built")
		if out := d.Result(t, id); out.Status != protocol.OutputSuccess || !strings.Contains(out.Text, "The monitor build is running.") {
			t.Errorf("the model reads %+v", out)
		}
		task := builtintest.Must(d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: "monitor:build:1"}}))(t).Task
		if turns := builtintest.Must(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: id}))(t).Data; task.Origin.TurnID != turns[len(turns)-1].TurnID {
			t.Errorf("its run comes from %+v, the first turn is %s", task.Origin, turns[len(turns)-1].TurnID)
		}
		want := "[monitor/line build] it is built"
		var woken protocol.TurnID
		for woken == "" {
			for _, in := range builtintest.Must(d.Queue.List(t.Context(), &protocol.QueueListParams{SessionID: id, All: true}))(t).Data {
				if in.Wake != nil {
					woken = in.TurnID
				}
			}
		}
		builtintest.Must(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: woken}))(t)
		last := model.Last(t).Messages
		if got := last[len(last)-1].Text(protocol.PartText); !strings.Contains(got, want) {
			t.Errorf("the model reads %q", got)
		}
	})
	t.Run("runtime/B10 the model lists monitors with their lines and stops them", func(t *testing.T) {
		d := builtintest.Start(t, t.TempDir(), 0, calling(
			call("start_monitor", `{"id":"m","command":"sleep 600","persistent":true,"notifyOnly":true}`),
			call("stop_monitor", `{"id":"m"}`), call("list_monitors", `{"updates":true}`)), monitor.Factory{})
		id := d.Session(t, nil)
		d.Turn(t, id, "go")
		var got struct {
			Monitors []protocol.Monitor
			Updates  []protocol.MonitorUpdate
		}
		if err := json.Unmarshal(d.Result(t, id).Value, &got); err != nil || len(got.Monitors) != 1 || len(got.Updates) != 1 {
			t.Fatalf("the model reads %+v: %v", d.Result(t, id), err)
		}
		m, u := got.Monitors[0], got.Updates[0]
		if m.State != protocol.MonitorStopped || !m.Spec.Persistent || !m.Spec.Restart || m.Spec.Wake != protocol.WakeNotify || u.Message != "stopped by internal:plugin" {
			t.Errorf("the monitor is %+v, its update %+v", m, u)
		}
	})
	for name, c := range map[string]scripted.Call{
		"stop one that is not there":   call("stop_monitor", `{"id":"none"}`),
		"start one in a place that is": call("start_monitor", `{"id":"m","command":"true","cwd":"none"}`),
	} {
		t.Run("runtime/B10 the model reads why it cannot "+name, func(t *testing.T) {
			d := builtintest.Start(t, t.TempDir(), 0, calling(c), monitor.Factory{})
			id := d.Session(t, nil)
			d.Turn(t, id, "go")
			if out := d.Result(t, id); out.Failure == nil || out.Failure.Class != protocol.FailInvalidRequest {
				t.Errorf("the model reads %+v", out)
			}
		})
	}
}
