package e2e

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

// TestAskedAgain repeats requests that change something. The second answer equals the first, except
// that it is marked as a duplicate.
func TestAskedAgain(t *testing.T) {
	w := newWorld(t, "allow", step(says("one")), step(says("two")), step(says("three")))
	w.serve()
	p := w.dial("")
	id := p.session(w.home)
	first := p.turn(id, "a")
	leaf := ask[protocol.GraphReadResult](p, "graph/read", protocol.GraphReadParams{SessionID: id}).Head.Leaf
	second := p.turn(id, "b")
	for _, c := range []struct {
		method string
		params map[string]any
	}{
		{"session/new", map[string]any{"cwd": w.work}},
		{"session/setTitle", map[string]any{"title": "a title"}},
		{"session/configure", map[string]any{"budget": map[string]any{"iterations": 7}}},
		{"graph/append", map[string]any{"nodes": []any{map[string]any{"message": map[string]any{"role": "user", "parts": []any{map[string]any{"kind": "text", "text": "a note"}}}}}}},
		{"graph/pin", map[string]any{"nodeId": leaf}},
		{"graph/unpin", map[string]any{"nodeId": leaf}},
		{"snapshot/create", map[string]any{"name": "here"}},
		{"session/fork", map[string]any{"atNode": leaf}},
		{"session/rewind", map[string]any{"toTurn": second.TurnID}},
		{"snapshot/restore", map[string]any{"name": "here"}},
		{"snapshot/delete", map[string]any{"name": "here"}},
		{"session/rewind", map[string]any{"toNode": leaf}},
		{"session/rewind", map[string]any{"toTurn": first.TurnID, "files": "only"}},
		{"tool/call", map[string]any{"name": "list", "args": map[string]any{}}},
		{"task/start", map[string]any{"taskId": "tsk_a", "spec": map[string]any{"kind": "other", "recovery": "external"}}},
		{"task/complete", map[string]any{"taskId": "tsk_a", "outcome": map[string]any{"kind": "completed"}}},
		{"session/archive", map[string]any{}},
		{"session/archive", map[string]any{"undo": true}},
	} {
		t.Run("issue/2-1 "+c.method, func(t *testing.T) {
			params := maps.Clone(c.params)
			params["idempotencyKey"] = t.Name()
			if c.method != "session/new" {
				params["sessionId"] = id
			}
			answer, err := try[json.RawMessage](p, c.method, params)
			if err != nil {
				t.Fatal(err)
			}
			seq := p.seq(id)
			again := ask[json.RawMessage](p, c.method, params)
			want, got := members(t, answer), members(t, again)
			if c.method != "task/start" && string(got["duplicate"]) != "true" { // task/start is recognized by the task id
				t.Errorf("the second answer is not marked as a duplicate: %s", again)
			}
			delete(got, "duplicate")
			if diff := cmp.Diff(want, got); diff != "" || p.seq(id) != seq {
				t.Errorf("the second answer differs (-first +second), or the request was executed again:\n%s", diff)
			}
		})
	}
}

func (p *peer) seq(id protocol.SessionID) protocol.Seq {
	p.t.Helper()
	return ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: id}).Session.Seq
}

func members(t *testing.T, raw json.RawMessage) (all map[string]string) {
	t.Helper()
	var plain map[string]json.RawMessage
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	all = map[string]string{}
	for name, value := range plain {
		all[name] = string(value)
	}
	return all
}
