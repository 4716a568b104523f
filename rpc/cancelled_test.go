package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc"
	"lashd/rpc/protocol"
)

// projecting is a deployer whose results are projected, as masking plugins do.
type projecting struct {
	deployer
	returns bool // once its context is done, with a success
}

func (p *projecting) Build(plugin.BuildContext) (plugin.Plugin, error) { return p, nil }

func (p *projecting) Register(r *plugin.Registrar) error {
	r.Tools().Add(p)
	r.Operations().Command(protocol.OperationInfo{Name: "command"}, p.run)
	r.Operations().Task(protocol.OperationInfo{Name: "task"}, p.run)
	r.Operations().Query(protocol.OperationInfo{Name: "query"}, func(ctx context.Context, c *plugin.OperationCall) (json.RawMessage, error) {
		_, err := p.run(ctx, c)
		return nil, err
	})
	r.ToolResults().Projector(func(_ context.Context, c *plugin.ToolResultContext) (protocol.ToolOutput, error) {
		return c.Output, nil
	})
	return nil
}

func (p *projecting) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	result, err := p.deployer.Execute(ctx, call)
	if p.returns {
		return tool.Result{Output: protocol.Succeed("deployed")}, nil
	}
	return result, err
}

func TestCancelled(t *testing.T) {
	for _, returns := range []bool{false, true} {
		p := &projecting{deployer{began: make(chan struct{}, 1)}, returns}
		s := startWith(t, []plugin.Factory{p})
		w := s.dial(t, false)
		id := w.newSession(t)
		for method, c := range map[string]struct{ name, want string }{
			"tool/call":         {"deploy", "reload unknown"},
			"operation/command": {"command", "reload unknown"},
			"operation/task":    {"task", "reload unknown"},
			"operation/query":   {"query", "now none"},
		} {
			t.Run(fmt.Sprintf("outside/19 %s is cancelled, its tool returns %t", method, returns), func(t *testing.T) {
				w.send(t, strings.TrimSpace(call(method, fmt.Sprintf(`{"sessionId":%q,"name":%q}`, id, c.name))))
				<-p.began
				w.send(t, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`)
				checkCancelled(t, w.answer(t), c.want)
			})
		}
	}
	s := start(t)
	w := s.dial(t, false)
	id := w.newSession(t)
	w.ask(t, 1, "session/configure", fmt.Sprintf(`{"sessionId":%q,"model":"stalled"}`, id))
	a := w.ask(t, 2, "turn/start", fmt.Sprintf(`{"sessionId":%q,%s}`, id, hello))
	var began protocol.TurnStartResult
	answered(t, a, &began)
	for method, c := range map[string]struct{ params, want string }{
		"turn/wait":         {fmt.Sprintf(`{"turnId":%q}`, began.TurnID), "now none"},
		"session/wait":      {fmt.Sprintf(`{"sessionId":%q}`, id), "now none"},
		"turn/run":          {fmt.Sprintf(`{"sessionId":%q,%s}`, id, hello), "reload durable"},
		"completion/create": {`{"model":"stalled",` + asked[1:len(asked)-1] + `}`, "reload unknown"},
	} {
		t.Run("outside/19 "+method+" is cancelled", func(t *testing.T) {
			w.send(t, strings.TrimSpace(call(method, c.params)))
			w.ask(t, 7, "ping", `{}`) // it is answered after the other has begun
			w.send(t, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`)
			checkCancelled(t, w.answer(t), c.want)
		})
	}
	t.Run("outside/19 methods that change nothing take no idempotency key", func(t *testing.T) {
		for name, m := range rpc.Methods() {
			if _, keyed := m.Params.FieldByName("IdempotencyKey"); keyed && m.Reads {
				t.Errorf("%s takes a key and is said to change nothing", name)
			}
		}
	})
}

func checkCancelled(t *testing.T, a answer, want string) {
	t.Helper()
	if a.Error == nil {
		t.Fatalf("it was answered %s, want the error cancelled", a.Result)
	}
	e := a.Error
	if got := fmt.Sprintf("%d %s %s %s", e.Code, e.Data.Kind, e.Data.Retry, e.Data.Outcome); got != "-32800 cancelled "+want {
		t.Errorf("it was answered %s (%s), want -32800 cancelled %s", got, e.Message, want)
	}
	if strings.Contains(e.Message, "context canceled") || strings.Contains(e.Message, "plugin") {
		t.Errorf("the error is %q", e.Message)
	}
}
