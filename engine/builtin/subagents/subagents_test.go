package subagents_test

import (
	"encoding/json"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/subagents"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// says are replies to whoever is told something that contains a text.
func says(to string, replies ...scripted.Reply) scripted.Turn {
	return scripted.Turn{Match: &scripted.Match{LastUserContains: to}, Replies: replies}
}

func calls(calls ...scripted.Call) scripted.Reply { return scripted.Reply{ToolCalls: calls} }

func call(name, args string) scripted.Call {
	return scripted.Call{Name: name, Args: json.RawMessage(args)}
}

func text(s string) scripted.Reply { return scripted.Reply{Text: s} }

// start is a daemon whose model plays these turns, and a session.
func start(t *testing.T, turns ...scripted.Turn) (*builtintest.Daemon, protocol.SessionID) {
	t.Helper()
	d := builtintest.Start(t, t.TempDir(), 0, scripted.New(&scripted.Script{Turns: turns}), subagents.Factory{})
	return d, d.Session(t, nil)
}

// result is what the newest call of a session gave the model, if that was no refusal.
func result[T any](t *testing.T, d *builtintest.Daemon, id protocol.SessionID) (v T) {
	t.Helper()
	out := d.Result(t, id)
	if err := json.Unmarshal(out.Value, &v); err != nil {
		t.Fatalf("the call came to %+v: %v", out, err)
	}
	return v
}

func TestSpawn(t *testing.T) {
	d, id := start(t,
		says("go", calls(call("spawn_agent", `{"task":"count the files","name":"Counter!","wait":true}`)), text("done")),
		says("count the files", text(" 42 files ")))
	if r := d.Turn(t, id, "go"); r.State != protocol.TurnCompleted {
		t.Fatalf("the turn ended as %+v", r.Outcome)
	}
	s := result[subagents.Status](t, d, id)
	if s.Name != "counter" || s.Path != "/root/counter" || s.Note == "" || s.State != "idle" || s.Capability != "explore" {
		t.Errorf("runtime/B11 the agent is %+v", s)
	}
	if s.Result == nil || s.Result.Status != protocol.TaskCompleted || string(s.Result.Value) != `"42 files"` {
		t.Errorf("runtime/B11 it came to %+v", s.Result)
	}
	child := builtintest.Must(d.ReadSession(t.Context(), &protocol.SessionReadParams{SessionID: s.SessionID}))(t).Session
	if child.Relation.Kind != protocol.RelationChild || child.Relation.Parent != id || child.Authority.Subagent == nil || child.Authority.Subagent.Depth != 1 {
		t.Errorf("runtime/B11 the child is %+v with %+v", child.Relation, child.Authority)
	}
}
