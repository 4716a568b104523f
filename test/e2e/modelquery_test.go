package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

func TestQuestionToAnotherModel(t *testing.T) {
	t.Run("runtime/K08 an agent on one API asks a model on another, and both are on the ledger", func(t *testing.T) {
		t.Parallel()
		s := &scene{world: newVendors(t)}
		config := filepath.Join(s.dir, "config.toml")
		s.write(config, readText(t, config)+"\n[plugins.llm_query]\nmodel = \""+fakemodel.GeminiAPI+"\"\n")
		s.begin()
		s.peer.uses(s.session, fakemodel.AnthropicAPI)
		question := map[string]any{"task": "Which lake is larger?", "outputSchema": map[string]any{"type": "object", "required": []string{"lake"}}}
		s.model.Push(
			to("find out", 0, step(uses("llm_query", question))),
			to("Which lake", 0, step(says(`{"lake":"Léman"}`))),
			to("find out", 1, step(says("It is Lake Geneva."))),
		)
		r := s.peer.turn(s.session, "find out")
		if r.Output.Safe != "It is Lake Geneva." || len(r.ToolCalls) != 1 || string(r.ToolCalls[0].Output.Value) != `{"lake":"Léman"}` {
			t.Fatalf("the turn says %q after the calls %+v", r.Output.Safe, r.ToolCalls)
		}
		asked := s.model.Requests()[1]
		if asked.API != fakemodel.GeminiAPI || len(asked.Chat.Tools) != 0 || !strings.Contains(string(asked.Body), `"responseJsonSchema"`) {
			t.Errorf("the question went to %s: %s", asked.API, asked.Body)
		}
		sources := map[string]int64{}
		for _, row := range ask[protocol.UsageReadResult](s.peer, "usage/read", protocol.UsageReadParams{SessionID: s.session}).Data {
			sources[row.Source+" "+row.Model] = row.Calls
		}
		if sources["llm_query m-gemini"] != 1 || sources["turn m-anthropic"] != 2 {
			t.Errorf("the ledger has the calls %v", sources)
		}
		if err := s.model.Check(); err != nil {
			t.Error(err)
		}
	})
}
