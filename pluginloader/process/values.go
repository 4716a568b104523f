package process

import (
	"context"
	"fmt"
	"slices"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Hooks that answer with a value: what they were given, as it shall be.

// Limits of one answer.
const (
	maxEvents = 100 // events for observers
	maxTexts  = 100 // texts for the prompt
	maxNodes  = 1000
)

// valued runs a hook that returns a value and checks it. An invalid answer is an Error with code
// Protocol. After an error that OnError allows, valued returns fallback, which is usually the
// hook's input.
func valued[R any](ctx context.Context, h *hook, m moment, fallback R, check func(*R) error) (R, error) {
	answer, err := called[R](ctx, h, m)
	if err == nil {
		if err = check(answer); err == nil {
			return *answer, nil
		}
		err = &Error{Plugin: h.factory.ID(), Code: Protocol, Err: fmt.Errorf("hook/%s: %w", h.Name, err)}
	}
	if h.forgives(ctx, err) {
		return fallback, nil
	}
	return fallback, err
}

// atMost returns an error if n exceeds a limit.
func atMost(limit, n int, what string) error {
	if n > limit {
		return fmt.Errorf("%d %s, at most %d", n, what, limit)
	}
	return nil
}

// assistantStream may change a piece of streamed text before clients see it.
func (h *hook) assistantStream(ctx context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) {
	return valued(ctx, h, moment{context: c}, c, func(c *plugin.StreamChunk) error {
		return atMost(maxEvents, len(c.Events)+len(c.Reasoning), "events and reasonings")
	})
}

// assistantResponse may change a complete reply before it is stored.
func (h *hook) assistantResponse(ctx context.Context, r plugin.Response) (plugin.Response, error) {
	return valued(ctx, h, moment{context: r}, r, func(r *plugin.Response) error {
		return atMost(maxEvents, len(r.Events), "events")
	})
}

// nothing is the answer of hooks that return no value.
type nothing struct{}

// anything accepts every answer.
func anything(*nothing) error { return nil }

// streamFinished reports the end of a stream, so that the plugin can free what it keeps for it.
func (h *hook) streamFinished(ctx context.Context, end plugin.StreamEnd) error {
	_, err := valued(ctx, h, moment{context: struct {
		Reason plugin.StreamEnd `json:"reason"`
	}{end}}, nothing{}, anything)
	return err
}

// event reports an event of the session, if the manifest asks for that kind.
func (h *hook) event(ctx context.Context, e *plugin.LifecycleEvent) error {
	if len(h.Events) > 0 && !slices.Contains(h.Events, e.Kind) {
		return nil
	}
	_, err := valued(ctx, h, moment{turn: turnOf(e.Report), view: e.View, host: e.Host, context: e}, nothing{}, anything)
	return err
}

// turnOf returns the turn of a report; empty: none.
func turnOf(r *protocol.TurnReport) protocol.TurnID {
	if r == nil {
		return ""
	}
	return r.TurnID
}

// projected is the output that enters the conversation.
type projected struct {
	Output protocol.ToolOutput `json:"output"`
}

// projectToolResult may change what the model reads of a tool result. The record keeps the output.
func (h *hook) projectToolResult(ctx context.Context, tc *plugin.ToolResultContext) (protocol.ToolOutput, error) {
	p, err := valued(ctx, h, moment{turn: tc.TurnID, context: tc}, projected{tc.Output}, func(p *projected) error {
		return checkOutput(&p.Output, func(d protocol.Digest) bool { return tc.Output.Artifact != nil && tc.Output.Artifact.Digest == d })
	})
	return p.Output, err
}

// prose is text for people.
type prose struct {
	Text string `json:"text"`
}

// projectProse may change text for people.
func (h *hook) projectProse(ctx context.Context, text string) (string, error) {
	a, err := valued(ctx, h, moment{context: prose{text}}, prose{text}, func(*prose) error { return nil })
	return a.Text, err
}

// configured holds the settings to store.
type configured struct {
	Config protocol.Config `json:"config"`
}

// configChanged may change settings before they are stored. The engine allows only stricter
// approval and options of the plugin itself.
func (h *hook) configChanged(ctx context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
	a, err := valued(ctx, h, moment{host: c.Host, context: c}, configured{c.Config}, func(*configured) error { return nil })
	return a.Config, err
}

// texts is the answer of the prompt hook.
type texts struct {
	Prompts []plugin.Prompt `json:"prompts,omitempty"`
}

// prompt returns texts for the system prompt of the next model call.
func (h *hook) prompt(ctx context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
	a, err := valued(ctx, h, moment{pc.TurnID, pc.View, pc.Host, pc}, texts{}, func(a *texts) error {
		return atMost(maxTexts, len(a.Prompts), "texts")
	})
	return a.Prompts, err
}

// prepared is the answer of transformContext. Tools are added for this turn only.
type prepared struct {
	plugin.PreparedContext
	Tools []wireTool `json:"tools,omitempty"`
}

// transformContext may change the history that the model sees, and add tools and prompt texts.
// Stored history does not change.
func (h *hook) transformContext(ctx context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
	given := struct {
		*plugin.ContextView
		plugin.PreparedContext
	}{v, pc}
	added := []tool.Tool{}
	a, err := valued(ctx, h, moment{host: v.Host, context: given}, prepared{PreparedContext: pc}, func(p *prepared) error {
		for _, t := range p.Tools {
			added = append(added, t.tool())
		}
		return checkTools(added)
	})
	out := a.PreparedContext
	out.Tools = pc.Tools
	if len(added) > 0 && err == nil {
		out.Tools = append(slices.Clip(pc.Tools), tool.Source{ID: h.factory.ID(), Provider: &addedTools{tools{h.instance}, added}})
	}
	return out, err
}

// summary is the answer of the compact hook: the nodes that replace history.
type summary struct {
	Nodes []protocol.NodeBody `json:"nodes,omitempty"`
}

// compact returns the nodes that replace old history. No nodes mean that the plugin leaves the
// compaction to others.
func (h *hook) compact(ctx context.Context, req *plugin.CompactRequest) ([]protocol.NodeBody, error) {
	a, err := valued(ctx, h, moment{view: req.View, host: req.Host, context: req}, summary{}, func(a *summary) error {
		return atMost(maxNodes, len(a.Nodes), "nodes")
	})
	return a.Nodes, err
}
