package modelquery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/modelquery"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// answering is the model of the agent and of its questions. Each text in asks becomes the arguments of a call of llm_query, all of them in
// one reply to "go"; a question with the text of a key of answers gets that reply.
type answering struct {
	provider.Provider
	mu    sync.Mutex
	asked []*provider.Request // the questions
}

func (a *answering) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	if req.Scope.SessionID == "" {
		a.mu.Lock()
		a.asked = append(a.asked, req)
		a.mu.Unlock()
	}
	return a.Provider.Stream(ctx, req)
}

func answers(replies map[string]scripted.Reply, asks ...string) *answering {
	first := scripted.Reply{Usage: &protocol.Usage{Input: 100}}
	for i, args := range asks {
		first.ToolCalls = append(first.ToolCalls, scripted.Call{ID: protocol.CallID(fmt.Sprint("c", i)), Name: "llm_query", Args: json.RawMessage(args)})
	}
	s := &scripted.Script{Turns: []scripted.Turn{
		{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{first, {Text: "done", Usage: &protocol.Usage{Input: 100}}}},
	}}
	for text, reply := range replies {
		reply.Usage = &protocol.Usage{Input: 7, Output: 1}
		s.Turns = append(s.Turns, scripted.Turn{Match: &scripted.Match{LastUserContains: text}, Replies: []scripted.Reply{reply}})
	}
	return &answering{Provider: scripted.New(s)}
}

// outputs runs a turn and returns the outputs of its calls, in their order.
func outputs(t *testing.T, model provider.Provider, options string) (*builtintest.Daemon, protocol.SessionID, []protocol.ToolOutput) {
	t.Helper()
	d := builtintest.Start(t, t.TempDir(), 0, model, modelquery.Factory{})
	id := d.Session(t, protocol.PluginOptions{modelquery.ID: []byte(options)})
	var all []protocol.ToolOutput
	for _, call := range d.Turn(t, id, "go").ToolCalls {
		all = append(all, call.Output)
	}
	return d, id, all
}

func TestQueries(t *testing.T) {
	t.Run("runtime/K08 a question gets an answer from the named model, without history and tools, and its tokens are on the ledger", func(t *testing.T) {
		model := answers(map[string]scripted.Reply{"Summarize.": {Text: "short"}}, `{"task":"Summarize.","inputs":"a long text"}`)
		d, id, out := outputs(t, model, `{"model":"test","maxOutput":50}`)
		if len(out) != 1 || out[0].Status != protocol.OutputSuccess || out[0].Text != "short" {
			t.Fatalf("the calls returned %+v", out)
		}
		req := model.asked[0]
		if len(req.Messages) != 1 || req.Messages[0].Parts[0].Text != "Summarize.\n\n<inputs>\na long text\n</inputs>" || len(req.Tools) != 0 || req.System != "" || req.Options.MaxOutput != 50 {
			t.Errorf("the model was asked %+v", req)
		}
		rows := builtintest.Must(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{SessionID: id}))(t).Data
		if !slices.ContainsFunc(rows, func(r protocol.UsageRow) bool { return r.Source == "llm_query" && r.Calls == 1 && r.Usage.Input == 7 }) {
			t.Errorf("the ledger is %+v", rows)
		}
	})

	t.Run("runtime/K08 with outputSchema the result is a value or a failure that says why not", func(t *testing.T) {
		const schema = `"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
		model := answers(map[string]scripted.Reply{"right": {Text: `{"n": 7}`}, "wrong": {Text: "seven"}},
			`{"task":"right",`+schema+`}`, `{"task":"wrong",`+schema+`}`, `{"task":"right","outputSchema":{"type":"city"}}`)
		_, _, out := outputs(t, model, `{"model":"test"}`)
		if len(out) != 3 || string(out[0].Value) != `{"n":7}` || out[0].Text != `{"n":7}` {
			t.Fatalf("the calls returned %+v", out)
		}
		if f := out[1].Failure; f == nil || f.Code != "invalid_value" || !strings.Contains(f.Message, "not JSON") || !strings.Contains(f.Message, "seven") {
			t.Errorf("the wrong answer is %+v", f)
		}
		if f := out[2].Failure; f == nil || f.Code != "invalid_schema" || !strings.Contains(f.Message, "outputSchema is not a valid JSON Schema") || len(model.asked) != 2 {
			t.Errorf("the wrong schema is %+v, after %d questions", f, len(model.asked))
		}
	})

	t.Run("runtime/K08 the turn has a limit of questions, and the next turn has its own", func(t *testing.T) {
		model := answers(map[string]scripted.Reply{"one": {Text: "1"}}, `{"task":"one"}`, `{"task":"one"}`, `{"task":"one"}`)
		d, id, out := outputs(t, model, `{"model":"test","perTurn":2}`)
		refused := 0
		for _, o := range out {
			if o.Failure != nil && o.Failure.Code == "query_budget" && o.Failure.Message == "this turn has made 2 calls of llm_query, which is its limit" {
				refused++
			}
		}
		if refused != 1 || len(model.asked) != 2 {
			t.Errorf("%d calls of %+v were refused, %d questions", refused, out, len(model.asked))
		}
		if text := model.asked[0].Messages[0].Parts[0].Text; text != "one" {
			t.Errorf("a question without inputs is %q", text)
		}
		if d.Turn(t, id, "go"); len(model.asked) != 4 {
			t.Errorf("%d questions after the second turn, want 4", len(model.asked))
		}
	})

	t.Run("runtime/K08 answers that were cut off or empty, failing models and long questions say so", func(t *testing.T) {
		model := answers(map[string]scripted.Reply{
			"cut": {Text: "half an", Stop: protocol.StopOutputLimit}, "empty": {Stop: protocol.StopContentFilter},
			"broken": {Error: &scripted.Failure{Kind: provider.KindHTTP, Code: "overloaded", Message: "too busy"}},
		}, `{"task":"cut"}`, `{"task":"empty"}`, `{"task":"broken"}`, `{"task":"`+strings.Repeat("x", 256<<10)+`"}`)
		_, _, out := outputs(t, model, `{"model":"test"}`)
		if len(out) != 4 || out[0].Text != "half an\n\n[The answer was cut off at the output limit.]" {
			t.Fatalf("the calls returned %+v", out)
		}
		for i, want := range []string{"empty_answer", "query_failed", "too_large"} {
			if f := out[i+1].Failure; f == nil || f.Code != want {
				t.Errorf("call %d failed with %+v, want %s", i+1, f, want)
			}
		}
		if f := out[2].Failure; f != nil && !strings.Contains(f.Message, "the model test did not answer: ") {
			t.Errorf("the failure of the model is %q", f.Message)
		}
	})

	t.Run("runtime/K08 a model that is not configured fails the call", func(t *testing.T) {
		_, _, out := outputs(t, answers(nil, `{"task":"one"}`), `{"model":"cheap"}`)
		if len(out) != 1 || out[0].Failure == nil || !strings.Contains(out[0].Failure.Message, "cheap") {
			t.Errorf("the call returned %+v", out)
		}
	})

	t.Run("runtime/K08 a session without a model for it has no such tool", func(t *testing.T) {
		d := builtintest.Start(t, t.TempDir(), 0, answers(nil), modelquery.Factory{})
		for _, options := range []protocol.PluginOptions{nil, {modelquery.ID: []byte(`{}`)}} {
			p := builtintest.Must(d.Sessions.PreviewPrompt(t.Context(), &protocol.DebugPromptParams{SessionID: d.Session(t, options)}))(t)
			if len(p.Tools) != 0 {
				t.Errorf("with %s the session has the tools %+v", options, p.Tools)
			}
		}
	})

	t.Run("runtime/K08 wrong options are an error", func(t *testing.T) {
		for _, options := range []string{`{"model":7}`, `{"model":"test","perTurn":0}`, `{"model":"test","maxOutput":-1}`} {
			if _, err := (modelquery.Factory{}).Build(plugin.BuildContext{Options: []byte(options)}); err == nil {
				t.Errorf("%s is accepted", options)
			}
		}
		if _, err := (modelquery.Factory{}).Build(plugin.BuildContext{Options: []byte(`{"model":"test","perTurn":1,"maxOutput":1}`)}); err != nil {
			t.Error(err)
		}
	})
}
