package plugin_test

import (
	"context"
	"strconv"
	"testing"

	"lashd/engine/plugin"
)

// BenchmarkOpen builds a session with 50 plugins, each with a tool, a prompt and two hooks.
func BenchmarkOpen(b *testing.B) {
	var factories []plugin.Factory
	for i := range 50 {
		name := "p" + strconv.Itoa(i)
		factories = append(factories, with(name, func(r *plugin.Registrar) {
			r.Tools().Add(tools{name})
			r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Content: name})
			r.Turn().Before(wants())
			r.Session().On(func(context.Context, *plugin.LifecycleEvent) error { return nil })
		}))
	}
	h := newHost(b, factories...)
	b.ReportAllocs()
	for b.Loop() {
		s, err := h.Open(b.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
	}
}

// BenchmarkHook measures a call of a hook that returns no directives.
func BenchmarkHook(b *testing.B) {
	s := open(b, before("p", wants()), with("q", func(r *plugin.Registrar) {
		r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) { return nil, nil })
		r.Output().Stream(func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) { return c, nil })
		r.Session().On(func(context.Context, *plugin.LifecycleEvent) error { return nil })
	}))
	ctx, host := b.Context(), everything()
	args := raw(`{"path":"engine/plugin/plugin.go"}`)
	for name, call := range map[string]func(){
		"turn":      func() { _, _ = s.BeforeTurn(ctx, &plugin.TurnContext{Host: host}) },
		"toolCall":  func() { _, _ = s.BeforeToolCall(ctx, &plugin.ToolCallContext{Args: args, Host: host}) },
		"stream":    func() { _, _ = s.Stream(ctx, plugin.StreamChunk{Text: "text"}) },
		"lifecycle": func() { s.Emit(ctx, &plugin.LifecycleEvent{Kind: plugin.TurnPersisted, Host: host}) },
		"none":      func() { _, _ = s.Checkpoint(ctx, &plugin.CheckpointContext{Host: host}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}
