package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// listenEverywhere registers hooks that record their arguments.
func listenEverywhere(r *plugin.Registrar, got map[plugin.Hook]string) {
	r.Prompt().Hook(func(ctx context.Context, c *plugin.PromptContext) ([]plugin.Prompt, error) {
		got[plugin.HookPrompt] = has(ctx, c.Host)
		return nil, nil
	})
	r.Turn().Before(func(ctx context.Context, c *plugin.TurnContext) ([]plugin.Directive, error) {
		got[plugin.HookBeforeTurn] = has(ctx, c.Host)
		return nil, nil
	})
	r.Turn().Checkpoint(func(ctx context.Context, c *plugin.CheckpointContext) ([]plugin.Directive, error) {
		got[plugin.HookCheckpoint] = has(ctx, c.Host)
		return nil, nil
	})
	r.Turn().After(func(ctx context.Context, c *plugin.TurnSummary) ([]plugin.Directive, error) {
		got[plugin.HookAfterTurn] = has(ctx, c.Host)
		return nil, nil
	})
	r.ToolCalls().Before(func(ctx context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
		got[plugin.HookBeforeTool] = has(ctx, c.Host)
		return nil, nil
	})
	r.ToolResults().After(func(ctx context.Context, c *plugin.ToolResultContext) ([]plugin.Directive, error) {
		got[plugin.HookAfterTool] = has(ctx, c.Host)
		return nil, nil
	})
	r.ToolResults().Projector(func(ctx context.Context, c *plugin.ToolResultContext) (protocol.ToolOutput, error) {
		got[plugin.HookProjector] = has(ctx, c.Host)
		return c.Output, nil
	})
	listenToTheRest(r, got)
}

func listenToTheRest(r *plugin.Registrar, got map[plugin.Hook]string) {
	events := map[plugin.LifecycleKind]plugin.Hook{
		plugin.TurnFinalized: plugin.HookTurnFinalized, plugin.TurnPersisted: plugin.HookTurnPersisted,
		plugin.SessionRestored: plugin.HookSessionRestored, plugin.SessionConfigChanged: plugin.HookConfigChanged,
	}
	r.Session().On(func(ctx context.Context, e *plugin.LifecycleEvent) error {
		got[events[e.Kind]] = has(ctx, e.Host)
		return nil
	})
	r.Session().MutateConfig(func(ctx context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
		got[plugin.HookConfigMutator] = has(ctx, c.Host)
		return c.Config, nil
	})
	r.Context().Transform(0, func(ctx context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
		got[plugin.HookTransform] = has(ctx, v.Host)
		return pc, nil
	})
	r.Context().Compactor(0, func(ctx context.Context, c *plugin.CompactRequest) ([]protocol.NodeBody, error) {
		got[plugin.HookCompactor] = has(ctx, c.Host)
		return nil, nil
	})
	r.Protocol().Session(plugin.ProtocolSession{BeforeModel: func(ctx context.Context, b *plugin.BeforeModel) (*protocol.FrameSwitch, error) {
		got[plugin.HookBeforeModel] = has(ctx, b.Host)
		return nil, nil
	}})
	r.Operations().Query(info("q", "forbidden"), func(ctx context.Context, c *plugin.OperationCall) (json.RawMessage, error) {
		got[plugin.HookQuery] = has(ctx, c.Host)
		return nil, nil
	})
	r.Operations().Command(info("c", "forbidden"), func(ctx context.Context, c *plugin.OperationCall) (*plugin.OperationResult, error) {
		got[plugin.HookCommand] = has(ctx, c.Host)
		return &plugin.OperationResult{}, nil
	})
	r.Operations().Task(info("t", "forbidden"), func(ctx context.Context, c *plugin.OperationCall) (*plugin.OperationResult, error) {
		got[plugin.HookTask] = has(ctx, c.Host)
		return &plugin.OperationResult{}, nil
	})
}

func callEverything(t *testing.T, s *plugin.Session, c plugin.Capabilities) {
	t.Helper()
	ctx, call := t.Context(), plugin.ToolCallContext{Host: c}
	var errs []error
	fail := func(err error) { errs = append(errs, err) }
	_, err := s.Prompts(ctx, &plugin.PromptContext{Host: c})
	fail(err)
	_, err = s.BeforeTurn(ctx, &plugin.TurnContext{Host: c})
	fail(err)
	_, err = s.Checkpoint(ctx, &plugin.CheckpointContext{Host: c})
	fail(err)
	_, err = s.AfterTurn(ctx, &plugin.TurnSummary{Host: c})
	fail(err)
	_, err = s.BeforeToolCall(ctx, &call)
	fail(err)
	_, err = s.AfterToolCall(ctx, &plugin.ToolResultContext{ToolCallContext: call})
	fail(err)
	s.ProjectResult(ctx, &plugin.ToolResultContext{ToolCallContext: call})
	for _, kind := range []plugin.LifecycleKind{plugin.TurnFinalized, plugin.TurnPersisted, plugin.SessionRestored, plugin.SessionConfigChanged} {
		s.Emit(ctx, &plugin.LifecycleEvent{Kind: kind, Host: c})
	}
	s.MutateConfig(ctx, protocol.Config{}, protocol.Config{}, c)
	_, err = s.Transform(ctx, &plugin.ContextView{Host: c}, plugin.PreparedContext{})
	fail(err)
	_, _, err = s.Compact(ctx, &plugin.CompactRequest{Host: c})
	fail(err)
	_, err = s.Protocol().BeforeModel(ctx, &plugin.BeforeModel{Host: c})
	fail(err)
	op := &plugin.OperationCall{Host: c}
	_, err = s.Query(ctx, "q", op, plugin.Target{})
	fail(err)
	_, err = s.Command(ctx, "c", op, plugin.Target{})
	fail(err)
	_, err = s.Task(ctx, "t", op, plugin.Target{})
	fail(err)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
