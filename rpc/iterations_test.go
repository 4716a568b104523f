package rpc_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"lashd/engine/models"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// callingModel is a model that calls a tool in each reply, and counts its replies.
func callingModel(t *testing.T) (models.Model, *atomic.Int32) {
	t.Helper()
	calls := new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c%d\",\"function\":{\"name\":\"nothing\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n", calls.Add(1))
	}))
	transport := &http.Transport{}
	t.Cleanup(srv.Close)
	t.Cleanup(transport.CloseIdleConnections)
	server := chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{Name: "fake", BaseURL: srv.URL, HTTPClient: &http.Client{Transport: transport}}})
	return models.Model{Name: "caller", Spec: protocol.ModelSpec{Provider: "fake", ID: "caller"}, Provider: server}, calls
}

func TestIterations(t *testing.T) {
	model, calls := callingModel(t)
	w := start(t, model).dial(t, false)
	create := func(t *testing.T, budget int) string {
		t.Helper()
		a := w.ask(t, 1, "session/new", fmt.Sprintf(`{"cwd":%q,"model":"caller","budget":{"iterations":%d}}`, t.TempDir(), budget))
		var r protocol.SessionNewResult
		if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
			t.Fatalf("%+v %v", a.Error, err)
		}
		return string(r.SessionID)
	}
	t.Run("issue/21-3 the iterations of an input limit the model calls of its turn, within the budget of the session", func(t *testing.T) {
		for _, c := range []struct {
			budget, turn int
			want         int32
		}{{-1, 3, 3}, {5, 1, 1}, {2, 4, 2}, {4, 0, 4}} {
			id := create(t, c.budget)
			calls.Store(0)
			a := w.ask(t, 2, "turn/run", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"go"}],"iterations":%d}`, id, c.turn))
			var r protocol.TurnReport
			if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
				t.Fatalf("%+v %v", a.Error, err)
			}
			if calls.Load() != c.want || r.State != protocol.TurnFailed || r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeMaxTurns || !strings.Contains(r.Outcome.Text, "model calls") {
				t.Errorf("budget %d, turn %d: %d calls, outcome %+v", c.budget, c.turn, calls.Load(), r.Outcome)
			}
			a = w.ask(t, 3, "turn/run", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"go"}],"iterations":1}`, id))
			if a.Error != nil || calls.Load() != c.want+1 {
				t.Errorf("the next turn made %d calls, want 1: %+v", calls.Load()-c.want, a.Error)
			}
		}
	})
	t.Run("issue/21-3 negative iterations are refused", func(t *testing.T) {
		a := w.ask(t, 4, "turn/start", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"go"}],"iterations":-1}`, create(t, 3)))
		if a.Error == nil || !strings.Contains(a.Error.Message, "/iterations must be at least 1") {
			t.Errorf("%+v", a.Error)
		}
	})
}
