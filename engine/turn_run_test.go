package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"lashd/engine"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// events reads everything a session tells until a turn is completed.
func events(t testing.TB, sub *engine.Subscription, until protocol.TurnID) []protocol.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var all []protocol.Event
	for {
		batch, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("after %d events: %v", len(all), err)
		}
		for _, raw := range batch {
			var e protocol.Event
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			all = append(all, e)
			if e.Type == protocol.EventTurnCompleted && e.TurnID == until {
				return all
			}
		}
	}
}

const toolScript = `{"turns": [{"replies": [
  {"reasoning": "hm", "text": "Let me see.", "chunkSize": 4, "toolCalls": [{"id": "c1", "name": "look", "args": {}}], "usage": {"input": 10, "output": 5}},
  {"text": "It is fine.", "usage": {"input": 20, "output": 7}}
]}]}`

func look(out string) toolFunc {
	return toolFunc{name: "look", run: func(context.Context, tool.Invocation) (tool.Result, error) {
		return tool.Result{Output: protocol.Succeed(out)}, nil
	}}
}

func TestTurnWithATool(t *testing.T) {
	d := start(t, setup{model: script(t, toolScript), tools: []tool.Provider{look("sunny")}})
	id := d.session(t)
	_, sub, err := d.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	report := d.turn(t, id, "how is it?")
	if report.State != protocol.TurnCompleted || report.Output.Safe != "It is fine." || report.Usage.Input != 30 {
		t.Errorf("report %+v %+v", report, report.Outcome)
	}
	seen := events(t, sub, report.TurnID)
	var types []protocol.EventType
	next := protocol.Seq(1)
	for _, e := range seen {
		if e.Type != protocol.EventItemDelta {
			types = append(types, e.Type)
		}
		if e.Seq != 0 {
			if e.Seq != next {
				t.Errorf("seq %d, want %d", e.Seq, next)
			}
			next++
		}
	}
	t.Log(types)
	zero := protocol.Seq(0)
	_, again, err := d.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id, AfterSeq: &zero})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for i, e := range durable(seen) {
		replayed := durable(events(t, again, report.TurnID))
		if len(replayed) != len(durable(seen)) {
			t.Fatalf("replay has %d durable events, live had %d", len(replayed), len(durable(seen)))
		}
		for i := range replayed {
			a, _ := json.Marshal(replayed[i])
			b, _ := json.Marshal(durable(seen)[i])
			if string(a) != string(b) {
				t.Errorf("replayed %s\nlive     %s", a, b)
			}
		}
		_, _ = i, e
		break
	}
}

func durable(events []protocol.Event) []protocol.Event {
	var kept []protocol.Event
	for _, e := range events {
		if e.Seq != 0 {
			kept = append(kept, e)
		}
	}
	return kept
}

var _ provider.Provider = (provider.Provider)(nil)
