package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

func TestPages(t *testing.T) {
	const address = "https://pay.example.com/bill?id=7"
	w := newWorld(t, "allow")
	w.plugin("pages", map[string]string{".mcp.json": mcpJSON(map[string]server{
		"sdk": {Command: goServer(t), Env: map[string]string{"PAGE": address}},
		"bad": {Command: goServer(t), Env: map[string]string{"PAGE": "https://bank.example.com@evil.example.com/"}},
		"raw": {Command: goServer(t), Env: map[string]string{"PAGE": "http://pay.example.com/"}},
	})})
	w.serve()
	p := w.dial("")
	p.loads("pages", nil)
	id := p.session(w.home)
	p.attach(id, 0)
	asked := func(turn protocol.TurnID) *protocol.Decision {
		return p.event("the question", func(e protocol.Event) bool { return opened(e) && e.TurnID == turn }).Decision
	}
	answer := func(d *protocol.Decision, choice protocol.DecisionChoice) {
		ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: choice, ArgsHash: d.ArgsHash})
	}
	for choice, want := range map[protocol.DecisionChoice]string{protocol.ChooseOpen: "accept", protocol.ChooseReject: "decline"} {
		t.Run("part13/6 a person sees the server, the host and the address of a page, and decides: "+string(choice), func(t *testing.T) {
			turn := p.start(id, fakemodel.ToolMarker("mcp__sdk__page", `{}`)).TurnID
			d := asked(turn)
			wantPrompt := "The MCP server pages/sdk asks you to open a page of the host pay.example.com. Open it only if you trust this host. The server says: \"Please pay.\"\n\nHost: pay.example.com\nAddress: " + address
			if d.Kind != protocol.DecisionQuestion || d.URL != address || d.Prompt != wantPrompt || !slices.Equal(d.Choices, []protocol.DecisionChoice{protocol.ChooseOpen, protocol.ChooseReject}) {
				t.Errorf("the question is %+v", d)
			}
			if _, err := try[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: protocol.ChooseAnswer, Value: json.RawMessage(`"yes"`)}); err == nil {
				t.Error("the question takes another answer")
			}
			answer(d, choice)
			if out := called(t, p.wait(turn), "mcp__sdk__page"); out.Text != want {
				t.Errorf("the server got %+v", out)
			}
		})
	}
	for name, want := range map[string]string{"bad": "must have no user name", "raw": "must begin with https://"} {
		t.Run("part13/6 lashd does not ask anybody to open the page of the server "+name, func(t *testing.T) {
			tool := "mcp__" + name + "__page"
			turn := p.start(id, fakemodel.ToolMarker(tool, `{}`)).TurnID
			if out := called(t, p.wait(turn), tool); !strings.Contains(out.Text, want) {
				t.Errorf("the server got %+v", out)
			}
		})
	}
	t.Run("part13/6 a call that requires a page is refused if the person does not open it", func(t *testing.T) {
		turn := p.start(id, fakemodel.ToolMarker("mcp__sdk__gated", `{}`)).TurnID
		answer(asked(turn), protocol.ChooseReject)
		out := called(t, p.wait(turn), "mcp__sdk__gated")
		if out.Failure == nil || out.Failure.Code != "plugin_failed" || !strings.Contains(out.Text, "requires the user to open a page before the call: the user did not open it") {
			t.Errorf("the model got %+v", out)
		}
	})
	t.Run("part13/6 a call that requires a page is sent again when the server says that the person is done", func(t *testing.T) {
		turn := p.start(id, fakemodel.ToolMarker("mcp__sdk__gated", `{}`)).TurnID
		d := asked(turn)
		answer(d, protocol.ChooseOpen)
		visit(t, d.URL)
		if out := called(t, p.wait(turn), "mcp__sdk__gated"); out.Text != "the gate is open" {
			t.Errorf("the model got %+v", out)
		}
	})
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

// TestACPPages has an editor ask the person to open the page of a server.
func TestACPPages(t *testing.T) {
	const address = "https://pay.example.com/bill"
	for _, c := range []struct{ name, offers, method, params, answer string }{
		{"in an editor that can open pages", `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `"mode":"url"`, `{"action":"accept"}`},
		{"in an editor that cannot, with buttons", `{"elicitation":{"form":{}}}`, "session/request_permission", address, `{"outcome":{"outcome":"selected","optionId":"open"}}`},
	} {
		t.Run("part13/6 a person opens the page of a server "+c.name, func(t *testing.T) {
			w := newWorld(t, "allow", step(uses("mcp__sdk__page", struct{}{})), done)
			w.plugin("pages", map[string]string{".mcp.json": mcpJSON(map[string]server{"sdk": {Command: goServer(t), Env: map[string]string{"PAGE": address}}})})
			w.serve()
			w.dial("").loads("pages", nil)
			e := w.npm(c.offers)
			e.open(w.work)
			end := e.prompt("go")
			asked := e.request(0)
			if asked.Method != c.method || !strings.Contains(string(asked.Params), c.params) || !strings.Contains(string(asked.Params), address) {
				t.Errorf("the agent asks %s %s", asked.Method, asked.Params)
			}
			e.answer(asked, c.answer)
			end()
			if w.read("accept") == 0 {
				t.Errorf("the model reads %s", w.bodies()[1])
			}
		})
	}
}

// visit opens a page like a browser.
func visit(t *testing.T, address string) {
	t.Helper()
	r, err := http.DefaultClient.Do(must(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
}
