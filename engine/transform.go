package engine

import (
	"context"
	"slices"

	"lashd/engine/graph"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// turnContext is what plugins make of a session for one turn: the history to show, extra prompts
// and tools. It is not stored; after a restart the plugins are asked again.
type turnContext struct {
	messages []*protocol.Message // shown instead of the history before the turn
	prompts  []plugin.Prompt     // added to the system prompt
	overlay  tool.Overlay
	base     *tool.Catalog // the catalog that extended was made from
	extended *tool.Catalog
}

// prompt composes what the model sees: system prompt, history, messages of the turn and tools. It
// belongs to the turn's goroutine.
type prompt struct {
	seams   *seams
	set     *pluginSet
	catalog *tool.Catalog // of the current iteration
	extra   *turnContext  // made by plugins for this turn; nil: nothing

	language  string // of the session's code cells; empty: not settled
	described string // language that the executor describes now; empty: not asked in this run of the daemon
}

// transform runs the plugins' context hooks, which decide what the model sees of the history. It
// runs before the first model call and whenever the machine asks again. A failed hook fails the
// turn. An error is returned only if the turn is suspended.
func (p *prompt) transform(ctx context.Context) (err error) {
	if !p.seams.plugins.Transforms() || p.seams.journal.finished() {
		return nil
	}
	made, failed := p.transformed(ctx)
	switch cause := context.Cause(ctx); {
	case p.seams.store.suspended():
		return cause
	case cause != nil: // the turn is cancelled; its next effect ends it
	case failed != nil:
		p.seams.failUnstarted(&hookFailure{"context_prepare_turn", failed})
	default:
		p.extra = made
	}
	return nil
}

// transformed runs the hooks on the history and the turn so far, and builds the catalog that they
// ask for.
func (p *prompt) transformed(ctx context.Context) (*turnContext, error) {
	s := p.seams
	turn := s.input
	if s.journal.machine != nil {
		turn = s.journal.messages()
	}
	view := s.view(turn)
	past := plugin.PreparedContext{Messages: view.Messages()[:len(s.past):len(s.past)]}
	pc, err := s.plugins.Transform(ctx, &plugin.ContextView{View: view, Host: s.capabilities()}, past)
	if err != nil {
		return nil, err
	}
	made, err := turnContextOf(pc)
	if err != nil || !made.changesTools() {
		return made, err
	}
	p.catalog, err = made.catalog(p.catalog, p.set.composer)
	return made, err
}

// turnContextOf turns the hooks' result into a turnContext. It fails if a tool call would lack its
// result, which no model accepts.
func turnContextOf(pc plugin.PreparedContext) (*turnContext, error) {
	made := &turnContext{prompts: pc.Prompts, overlay: tool.Overlay{WithoutBase: pc.WithoutBase, Sources: pc.Tools}}
	for _, m := range pc.Messages {
		m.Parts = slices.Clone(m.Parts)
		provider.Sanitize(m.Parts)
		made.messages = append(made.messages, &m)
	}
	return made, graph.ResumeSafe(made.messages)
}

// visibleHistory returns the history before the turn as the model sees it.
func (p *prompt) visibleHistory() []*protocol.Message {
	if p.extra == nil {
		return p.seams.past
	}
	return slices.Clip(p.extra.messages)
}

// changesTools reports whether the turn adds tools or hides those of the session.
func (c *turnContext) changesTools() bool {
	return c != nil && (c.overlay.WithoutBase || len(c.overlay.Sources) > 0)
}

// catalog returns the session's catalog with the tools of the turn. It caches the result until the
// session's catalog changes.
func (c *turnContext) catalog(base *tool.Catalog, tools *tool.Composer) (*tool.Catalog, error) {
	if !c.changesTools() {
		return base, nil
	}
	if c.base == base {
		return c.extended, nil
	}
	mine, err := tools.With(c.overlay)
	if err == nil {
		c.base, c.extended = base, mine
	}
	return mine, err
}
