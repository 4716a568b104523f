package lashdplugin

import (
	"context"
	"encoding/json"
)

// hooks are those that the plugin has, by name.
func (p *Plugin[S]) hooks() map[string]handler[S] {
	all := map[string]handler[S]{
		"beforeTurn":        hook(p.BeforeTurn, as[[]Directive]("directives")),
		"beforeToolCall":    hook(p.BeforeToolCall, as[[]Directive]("directives")),
		"afterToolCall":     hook(p.AfterToolCall, as[[]Directive]("directives")),
		"checkpoint":        hook(p.Checkpoint, as[[]Directive]("directives")),
		"afterTurn":         hook(p.AfterTurn, as[[]Directive]("directives")),
		"prompt":            hook(p.Prompt, as[[]Prompt]("prompts")),
		"assistantStream":   hook(p.AssistantStream, itself),
		"assistantResponse": hook(p.AssistantResponse, itself),
		"streamFinished":    hook(silent(p.StreamFinished), itself),
		"projectToolResult": hook(p.ProjectToolResult, as[Output]("output")),
		"configChanged":     hook(p.ConfigChanged, as[json.RawMessage]("config")),
		"event":             hook(silent(p.Event), itself),
		"transformContext":  hook(p.TransformContext, withoutView),
		"compact":           hook(p.Compact, as[[]Node]("nodes")),
	}
	for name, h := range all {
		if h == nil {
			delete(all, name)
		}
	}
	return all
}

// hook decodes the context, and makes the answer of what f gives; nil: there is no f.
func hook[S, C, R any](f func(context.Context, *Call[S], *C) (R, error), answer func(R) any) handler[S] {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, c *Call[S]) (any, error) {
		given := new(C)
		if err := json.Unmarshal(c.given.Context, given); err != nil {
			return nil, err
		}
		result, err := f(ctx, c, given)
		if err != nil {
			return nil, err
		}
		return answer(result), nil
	}
}

// as answers with a member.
func as[R any](member string) func(R) any {
	return func(result R) any { return map[string]R{member: result} }
}

func itself[R any](result R) any { return result }

func withoutView(pc *PreparedContext) any {
	answer := *pc
	answer.View, answer.Tools = nil, careful(pc.Tools)
	return answer
}

// silent is for hooks that only look.
func silent[S, C any](f func(context.Context, *Call[S], *C) error) func(context.Context, *Call[S], *C) (struct{}, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, c *Call[S], given *C) (struct{}, error) { return struct{}{}, f(ctx, c, given) }
}
