package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// citySchema has the form that OpenAI and Anthropic enforce.
const citySchema = `{"type":"object","properties":{"name":{"type":"string"},"people":{"type":"integer"}},"required":["name","people"],"additionalProperties":false}`

// enforcing is what a request without tools has in its body, by API, so that the server enforces the schema.
var enforcing = map[string]string{
	fakemodel.ChatAPI:      `"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + citySchema + `}}`,
	fakemodel.ResponsesAPI: `"text":{"format":{"type":"json_schema","name":"answer","strict":true,"schema":` + citySchema + `}}`,
	fakemodel.AnthropicAPI: `"format":{"type":"json_schema","schema":` + citySchema + `}`,
	fakemodel.GeminiAPI:    `"responseMimeType":"application/json","responseJsonSchema":`,
}

// asks starts a turn that must end with a city.
func (p *peer) asks(id protocol.SessionID, input string) protocol.TurnID {
	p.t.Helper()
	return ask[protocol.TurnStartResult](p, "turn/start", protocol.TurnStartParams{SessionID: id, Input: text(input), Schema: json.RawMessage(citySchema)}).TurnID
}

// TestValuesOnEachAPI asks a model of each API for values. The server rejects what the vendor would reject.
func TestValuesOnEachAPI(t *testing.T) {
	for _, api := range fakemodel.APIs() {
		t.Run("part9/structured a value after a tool call, a wrong reply and SIGKILL, and a turn without a value, on "+api, func(t *testing.T) {
			t.Parallel()
			s := &scene{world: newVendors(t)}
			s.begin()
			s.peer.uses(s.session, api)
			s.killedInRepair(api)
			s.neverRight()
			s.outsideTurns(api)
			if err := s.model.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// killedInRepair kills the daemon while the model repairs its reply. The next daemon makes only that call again.
func (s *scene) killedInRepair(api string) {
	s.t.Helper()
	s.model.Push(
		to("which city", 0, step(thinks("Hm.", "signed"), uses("read", map[string]string{"path": "greeting.txt"}))),
		to("which city", 1, step(says("It is Bern."))),
		to("the reply is not JSON", 0, step(says(`{"name":`), stalls)),
		to("the reply is not JSON", 0, step(says("```json\n{\"name\": \"Bern\", "), says("\"people\": 133000}\n```"))),
	)
	turn := s.peer.asks(s.session, "which city?")
	s.peer.event("the beginning of the second reply", func(e protocol.Event) bool {
		return e.Type == protocol.EventItemDelta && strings.Contains(e.Text, `{"name":`)
	})
	s.daemon.kill()
	s.restart()
	r := s.peer.wait(turn)
	if r.Outcome.Kind != protocol.OutcomeFinalValue || string(r.Outcome.Value) != `{"name":"Bern","people":133000}` {
		s.t.Fatalf("the turn ended with %+v", r.Outcome)
	}
	if n := len(s.model.Requests()); n != 4 || len(r.Calls) != 3 || len(r.Issues) != 1 {
		s.t.Errorf("%d requests, %d calls in the report, issues %+v; want 4, 3 and one issue", n, len(r.Calls), r.Issues)
	}
	for i, req := range s.model.Requests() {
		// Gemini cannot enforce a schema beside tools.
		if got := strings.Contains(string(req.Body), enforcing[api]); got != (api != fakemodel.GeminiAPI) {
			s.t.Errorf("request %d asks the server to enforce the schema: %v; body %s", i, got, req.Body)
		}
		if !strings.Contains(string(req.Body), "Your final reply contains only this value") {
			s.t.Errorf("request %d does not say what the final reply contains", i)
		}
	}
	last := s.model.Requests()[3].Chat.Messages
	if n := len(last); n < 3 || last[n-2].Content != "It is Bern." || !strings.HasPrefix(string(last[n-1].Content), "The reply does not match the JSON Schema: the reply is not JSON") {
		s.t.Errorf("the last request ends with %+v", last)
	}
}

// neverRight has a turn whose replies never match.
func (s *scene) neverRight() {
	s.t.Helper()
	before := len(s.model.Requests())
	s.model.Push(
		to("which river", 0, step(says(`{"name":"Aare"}`))), to("missing properties", 0, step(says(`{"name":"Aare"}`))), to("missing properties", 0, step(says(`{"name":"Aare"}`))),
	)
	r := s.peer.wait(s.peer.asks(s.session, "which river?"))
	if r.State != protocol.TurnFailed || r.Outcome.Kind != protocol.OutcomeInvalidValue || !strings.Contains(r.Outcome.Text, "people") {
		s.t.Errorf("the turn is %s: %+v", r.State, r.Outcome)
	}
	if n := len(s.model.Requests()) - before; n != 3 || len(r.Issues) != 3 {
		s.t.Errorf("%d requests, issues %+v; want 3 of each", n, r.Issues)
	}
}

// outsideTurns asks for a value with completion/create, in one request that the server can enforce.
func (s *scene) outsideTurns(api string) {
	s.t.Helper()
	s.model.Push(to("which lake", 0, step(says(`{"name":"Thun","people":0}`))))
	r := ask[protocol.CompletionResult](s.peer, "completion/create", protocol.CompletionParams{
		Model: api, SessionID: s.session, Text: "which lake?", Schema: json.RawMessage(citySchema), Label: "lakes",
	})
	if string(r.Value) != `{"name":"Thun","people":0}` || r.Problem != "" {
		s.t.Errorf("the value is %s, the problem %q", r.Value, r.Problem)
	}
	all := s.model.Requests()
	if body := string(all[len(all)-1].Body); !strings.Contains(body, enforcing[api]) {
		s.t.Errorf("the server is not asked to enforce the schema: %s", body)
	}
}
