package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// oven is a tool with a deferred result.
type oven struct{ keys chan protocol.CompletionKey }

func (o oven) Tools() []tool.Tool {
	return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "bake", Description: "bakes"}, Contract: protocol.ToolContract{MayDefer: true}}}
}

func (o oven) Execute(ctx context.Context, c tool.Invocation) (tool.Result, error) {
	key, err := c.Host.CompletionKey(ctx, protocol.Deferral{})
	o.keys <- key
	return tool.Result{Pending: true}, err
}

func TestCompletionOnTheWire(t *testing.T) {
	t.Run("plugin/TL-21 runtime/T10 tool/complete completes a pending call once", func(t *testing.T) {
		bakes := oven{make(chan protocol.CompletionKey, 1)}
		model := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{
			{ToolCalls: []scripted.Call{{ID: "c1", Name: "bake"}}}, {Text: "served"},
		}}})
		w := startWith(t, []plugin.Factory{plugin.Static("kitchen", func(r *plugin.Registrar) error {
			r.Tools().Add(bakes)
			return nil
		})}, models.Model{Name: "cook", Spec: protocol.ModelSpec{Provider: "p", ID: "cook"}, Provider: model}).dial(t, false)
		id := w.newSession(t)
		if a := w.ask(t, 1, "session/configure", fmt.Sprintf(`{"sessionId":%q,"model":"cook","approval":{"mode":"allow"}}`, id)); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		var began protocol.TurnStartResult
		answered(t, w.ask(t, 2, "turn/start", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"go"}]}`, id)), &began)
		key := <-bakes.keys
		for i, want := range []bool{true, false} {
			var done protocol.ToolCompleteResult
			answered(t, w.ask(t, 3+i, "tool/complete", fmt.Sprintf(`{"key":%q,"output":{"status":"success","text":"bread %d"}}`, key, i)), &done)
			if done.Accepted != want {
				t.Errorf("completion %d was accepted: %t", i, done.Accepted)
			}
		}
		var report protocol.TurnReport
		answered(t, w.ask(t, 5, "turn/wait", fmt.Sprintf(`{"turnId":%q}`, began.TurnID)), &report)
		if report.State != protocol.TurnCompleted || len(report.ToolCalls) != 1 || report.ToolCalls[0].Output.Text != "bread 0" {
			t.Errorf("%s %+v", report.State, report.ToolCalls)
		}
	})
}

// answered decodes a response that is not an error.
func answered(t *testing.T, a answer, into any) {
	t.Helper()
	if a.Error != nil {
		t.Fatalf("%+v", a.Error)
	}
	if err := json.Unmarshal(a.Result, into); err != nil {
		t.Fatal(err)
	}
}
