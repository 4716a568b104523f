package rpc_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lashd/engine/models"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// effortServer is a model server that notes the reasoning effort of each call, in the order of the calls.
func effortServer(t *testing.T) (url string, efforts chan string) {
	t.Helper()
	efforts = make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Effort string `json:"reasoning_effort"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		efforts <- body.Effort
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	return srv.URL, efforts
}

// effortModels are models that differ in what they know of reasoning efforts.
func effortModels(t *testing.T, url string) []models.Model {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	server := chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{Name: "fake", BaseURL: url, HTTPClient: &http.Client{Transport: transport}}})
	model := func(name string, r *protocol.ReasoningSpec) models.Model {
		return models.Model{Name: name, Spec: protocol.ModelSpec{Provider: "fake", ID: name, Reasoning: r}, Provider: server}
	}
	return []models.Model{
		model("thinker", &protocol.ReasoningSpec{Efforts: []string{"low", "high"}, Default: "low"}),
		model("strict", &protocol.ReasoningSpec{Efforts: []string{"low", "high"}, Mandatory: true}),
	}
}

func TestReasoningEffort(t *testing.T) {
	url, efforts := effortServer(t)
	s := start(t, effortModels(t, url)...)
	w := s.dial(t, false)
	dir := t.TempDir()
	create := func(t *testing.T, settings string) string {
		t.Helper()
		a := w.ask(t, 1, "session/new", fmt.Sprintf(`{"cwd":%q,%s}`, dir, settings))
		var r protocol.SessionNewResult
		if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
			t.Fatalf("%+v %v", a.Error, err)
		}
		return string(r.SessionID)
	}
	trigger := func(effort string) string {
		return fmt.Sprintf(`{"key":"k","source":{"type":"manual.emitted"},"action":{"kind":"newSession","text":"go","session":{"cwd":%q,"model":"thinker","effort":%q}}}`, dir, effort)
	}
	run := func(t *testing.T, id, more, want string) {
		t.Helper()
		a := w.ask(t, 2, "turn/run", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"go"}]%s}`, id, more))
		if a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		if got := <-efforts; got != want {
			t.Errorf("the call had the effort %q, want %q", got, want)
		}
	}
	t.Run("runtime/M08 an effort that the model cannot have is refused with its code, and nothing is stored", func(t *testing.T) {
		id := create(t, `"model":"thinker"`)
		on := fmt.Sprintf(`{"sessionId":%q,`, id)
		before := w.ask(t, 3, "session/list", `{}`)
		for _, c := range []struct{ method, params, code, message string }{
			{"session/new", fmt.Sprintf(`{"cwd":%q,"model":"thinker","effort":"extreme"}`, dir), "unsupported_effort", `/effort is wrong: model thinker has no reasoning effort "extreme", only low, high`},
			{"session/new", fmt.Sprintf(`{"cwd":%q,"effort":"low"}`, dir), "effort_not_configurable", "/effort is wrong: model m does not take a reasoning effort"},
			{"session/new", fmt.Sprintf(`{"cwd":%q,"model":"strict"}`, dir), "effort_required", "/effort is wrong: model strict needs a reasoning effort, one of low, high"},
			{"session/configure", on + `"effort":"extreme"}`, "unsupported_effort", ""},
			{"session/configure", on + `"model":"m","effort":"low"}`, "effort_not_configurable", ""},
			{"session/configure", on + `"model":"strict"}`, "effort_required", ""},
			{"turn/start", on + `"input":[{"type":"text","text":"go"}],"effort":"extreme"}`, "unsupported_effort", ""},
			{"completion/create", `{"text":"go","model":"thinker","effort":"extreme"}`, "unsupported_effort", ""},
			{"completion/create", `{"text":"go","model":"strict"}`, "effort_required", ""},
			{"trigger/register", trigger("extreme"), "unsupported_effort", "/action/session/effort is wrong"},
		} {
			a := w.ask(t, 4, c.method, c.params)
			want := protocol.ErrorData{Kind: "invalidParams", Retry: "never", Outcome: "none", Pointer: "/effort", Code: c.code}
			if c.method == "trigger/register" {
				want.Pointer = "/action/session/effort"
			}
			if a.Error == nil || fmt.Sprint(a.Error.Data) != fmt.Sprint(want) || !strings.Contains(a.Error.Message, c.message) {
				t.Errorf("%s %s: %+v", c.method, c.params, a.Error)
			}
		}
		if after := w.ask(t, 5, "session/list", `{}`); string(after.Result) != string(before.Result) {
			t.Errorf("the sessions were %s, now %s", before.Result, after.Result)
		}
		if a := w.ask(t, 6, "turn/list", on+`"limit":1}`); !strings.Contains(string(a.Result), `"data":[]`) {
			t.Errorf("turns: %s", a.Result)
		}
	})
	t.Run("runtime/M08 the effort of a session, a change and a turn reach the model", func(t *testing.T) {
		id := create(t, `"model":"thinker","effort":"high"`)
		run(t, id, "", "high")
		run(t, id, `,"effort":"low"`, "low")
		run(t, id, "", "high")
		if a := w.ask(t, 3, "session/configure", fmt.Sprintf(`{"sessionId":%q,"effort":""}`, id)); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		run(t, id, "", "low")
		if a := w.ask(t, 4, "session/configure", fmt.Sprintf(`{"sessionId":%q,"model":"strict","effort":"high"}`, id)); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		run(t, id, "", "high")
	})
	t.Run("runtime/M08 the effort of a completion and of a trigger reach the model", func(t *testing.T) {
		for i, c := range []struct{ method, params, want string }{
			{"completion/create", `{"text":"go","model":"thinker","effort":"high"}`, "high"},
			{"completion/create", `{"text":"go","model":"thinker"}`, "low"},
			{"trigger/register", trigger("high"), ""},
			{"trigger/emit", `{"type":"manual.emitted"}`, "high"},
		} {
			if a := w.ask(t, 10+i, c.method, c.params); a.Error != nil {
				t.Fatalf("%s: %+v", c.method, a.Error)
			}
			if c.want == "" {
				continue
			}
			if got := <-efforts; got != c.want {
				t.Errorf("after %s %s the call had the effort %q, want %q", c.method, c.params, got, c.want)
			}
		}
	})
}
