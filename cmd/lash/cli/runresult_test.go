package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
)

func TestRunResult(t *testing.T) {
	p := newPlace(t)
	p.write("config.toml", "script = \"script.json\"\nprice = {input = 1, output = 10}\n")
	p.write("script.json", strings.Replace(script, `{"turns": [`, `{"turns": [
		{"match": {"lastUserContains": "value"}, "replies": [{"text": "{\"city\": \"Bern\"}", "usage": {"input": 1000, "output": 100}}]},`, 1))
	if err := os.WriteFile(filepath.Join(p.work, "city.json"), []byte(`{"type":"object","required":["city"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		code int
		want runResult // ids, usage and durations are compared apart
		args []string
	}{
		{"an answer", 0, runResult{State: protocol.TurnCompleted, Outcome: protocol.OutcomeAssistantMessage, Answer: "hello"}, []string{"hi"}},
		{"a value", 0, runResult{State: protocol.TurnCompleted, Outcome: protocol.OutcomeFinalValue, Answer: `{"city": "Bern"}`, Value: json.RawMessage(`{"city":"Bern"}`), CostUSD: 0.002}, []string{"--output-schema", "city.json", "value"}},
		{"a failed turn", console.ExitFailed, runResult{State: protocol.TurnFailed, Outcome: protocol.OutcomeProviderError, Error: "the model refused"}, []string{"fail"}},
		{"a denied call", console.ExitDenied, runResult{State: protocol.TurnCompleted, Outcome: protocol.OutcomeAssistantMessage, Answer: "tried", Error: "was denied: "}, []string{"--sandbox", "fullAccess", "touch it"}},
	} {
		t.Run("issue/21-3 run --json prints one object for "+test.name+", and keeps the exit code", func(t *testing.T) {
			r := p.want(test.code, "", "", append([]string{"run", "--json"}, test.args...)...)
			var got runResult
			if err := json.Unmarshal([]byte(r.out), &got); err != nil || strings.Count(r.out, "\n") != 1 {
				t.Fatalf("stdout is %q, %v; want one object on one line", r.out, err)
			}
			if got.State != test.want.State || got.Outcome != test.want.Outcome || got.Answer != test.want.Answer || string(got.Value) != string(test.want.Value) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if test.want.Error == "" && got.Error != "" || !strings.Contains(got.Error, test.want.Error) || !strings.Contains(r.err, got.Error) {
				t.Errorf("the error is %q, want %q as in stderr %q", got.Error, test.want.Error, r.err)
			}
			if test.want.CostUSD != 0 && got.CostUSD != test.want.CostUSD {
				t.Errorf("the cost is %v dollars, want %v; %+v", got.CostUSD, test.want.CostUSD, got.Usage)
			}
			p.want(0, string(got.TurnID), "", "call", "turn/read", `{"turnId":"`+string(got.TurnID)+`"}`)
			p.want(0, string(got.SessionID), "", "session", "show", string(got.SessionID))
		})
	}
	t.Run("issue/21-3 run --json prints nothing on stdout if no turn was started", func(t *testing.T) {
		if r := p.want(console.ExitFailed, "", "lash model lists the models", "run", "--json", "--model", "none", "hi"); r.out != "" {
			t.Errorf("stdout is %q", r.out)
		}
	})
	t.Run("issue/21-3 run --max-turns limits the model calls of the turn", func(t *testing.T) {
		r := p.want(console.ExitFailed, `"outcome":"maxTurns"`, "", "run", "--json", "--allow", "--max-turns", "1", "touch it")
		p.want(0, "tried\n", "", "run", "--allow", "--max-turns", "2", "touch it")
		p.want(console.ExitUsage, "", "expected a number, 0 or more", "run", "--max-turns", "-1", "hi")
		if !strings.Contains(r.err, "maxTurns") && !strings.Contains(r.err, "limit") {
			t.Errorf("stderr is %q, want the reason", r.err)
		}
	})
	t.Run("issue/21-3 --json and --stream-json exclude each other", func(t *testing.T) {
		p.want(console.ExitUsage, "", "can't be used together", "run", "--json", "--stream-json", "hi")
	})
}
