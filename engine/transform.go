package engine

import (
	"context"
	"slices"

	"lashd/engine/graph"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// turnContext is what plugins made of a session for one turn. Nothing of it is stored; after a restart they are asked again.
type turnContext struct {
	messages []*protocol.Message // shown instead of the history before the turn
	prompts  []plugin.Prompt     // added to the system prompt
	overlay  tool.Overlay
	base     *tool.Catalog // the catalog that extended was made from
	extended *tool.Catalog
}

// prompt makes what the model sees of the session and of the turn.
type prompt struct {
	seams   *seams
	set     *pluginSet
	catalog *tool.Catalog // of the current iteration
	extra   *turnContext  // made by plugins for this turn; nil: nothing
}

// transform has the plugins decide what the model sees of the past, before each of its calls. If they fail, so does the turn. An error means that the
// daemon stops.
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

// turnContextOf is what transforms have made, if a model can be shown it.
func turnContextOf(pc plugin.PreparedContext) (*turnContext, error) {
	made := &turnContext{prompts: pc.Prompts, overlay: tool.Overlay{WithoutBase: pc.WithoutBase, Sources: pc.Tools}}
	for _, m := range pc.Messages {
		m.Parts = slices.Clone(m.Parts)
		sanitize(m.Parts)
		made.messages = append(made.messages, &m)
	}
	return made, graph.ResumeSafe(made.messages)
}

// shown is the history before the turn as the model sees it.
func (p *prompt) visibleHistory() []*protocol.Message {
	if p.extra == nil {
		return p.seams.past
	}
	return slices.Clip(p.extra.messages)
}

func (c *turnContext) changesTools() bool {
	return c != nil && (c.overlay.WithoutBase || len(c.overlay.Sources) > 0)
}

// catalog is a session's catalog with what the turn adds.
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
