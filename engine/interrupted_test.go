package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestInterrupted(t *testing.T) {
	for _, what := range []string{"the tool", "the operation"} {
		t.Run("issue/2 a request that fails because lashd stops after it began does not ask for a retry: "+what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := make(chan struct{}, 1)
				run := func(ctx context.Context) error {
					began <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				}
				s := with(operator(func(g plugin.OperationGroup) {
					g.Command(named("deploy", ""), func(ctx context.Context, _ *plugin.OperationCall) (*plugin.OperationResult, error) {
						return nil, run(ctx)
					})
				}))
				s.tools = []tool.Provider{toolFunc{name: "deploy", run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
					return tool.Result{}, run(ctx)
				}}}
				d := start(t, s)
				id := d.session(t)
				ctx := context.WithoutCancel(t.Context())
				done := later(func() (any, error) {
					if what == "the tool" {
						return d.Tools.Call(ctx, &protocol.ToolCallParams{SessionID: id, Name: "deploy"})
					}
					return d.Operations.Command(ctx, d.operation(id, "deploy"))
				})
				<-began
				d.halt()
				err := <-done
				if !errors.As(err, new(*engine.InterruptedError)) || !errors.Is(err, engine.ErrShuttingDown) || strings.Contains(err.Error(), "repeat") || !strings.Contains(err.Error(), what) {
					t.Errorf("it got: %v", err)
				}
			})
		})
	}
}
