package rpc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// deployer is a plugin with a tool and operations that report when they have begun, and fail when they are cancelled.
type deployer struct{ began chan struct{} }

func (*deployer) ID() string                                         { return "deployer" }
func (d *deployer) Build(plugin.BuildContext) (plugin.Plugin, error) { return d, nil }

func (d *deployer) Register(r *plugin.Registrar) error {
	r.Tools().Add(d)
	r.Operations().Command(protocol.OperationInfo{Name: "command"}, d.run)
	r.Operations().Task(protocol.OperationInfo{Name: "task"}, d.run)
	return nil
}

func (*deployer) Tools() []tool.Tool {
	return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "deploy", Description: "Deploys."}}}
}

func (d *deployer) Execute(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
	_, err := d.run(ctx, nil)
	return tool.Result{}, err
}

func (d *deployer) run(ctx context.Context, _ *plugin.OperationCall) (*plugin.OperationResult, error) {
	d.began <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestInterruptedOutcome(t *testing.T) {
	d := &deployer{began: make(chan struct{}, 1)}
	s := startWith(t, []plugin.Factory{d})
	w, other := s.dial(t, false), s.dial(t, false)
	other.newSession(t)
	for _, c := range [][2]string{{"tool/call", "deploy"}, {"operation/command", "command"}, {"operation/task", "task"}} {
		t.Run("issue/2 the outcome is unknown if the session is deleted after the request has begun: "+c[0], func(t *testing.T) {
			id := w.newSession(t)
			w.send(t, strings.TrimSpace(call(c[0], fmt.Sprintf(`{"sessionId":%q,"name":%q}`, id, c[1]))))
			<-d.began
			if a := other.ask(t, 9, "session/delete", fmt.Sprintf(`{"sessionId":%q}`, id)); a.Error != nil {
				t.Fatalf("deleted: %+v", a.Error)
			}
			a := w.answer(t)
			if a.Error == nil || a.Error.Data.Kind != protocol.KindSessionDeleted || a.Error.Data.Outcome != protocol.EffectUnknown || !strings.Contains(a.Error.Message, "its effects are unknown") {
				t.Errorf("the response is %+v", a.Error)
			}
		})
	}
}
