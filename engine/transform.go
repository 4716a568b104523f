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
	messages []*protocol.Message // in place of the history before the turn
	prompts  []plugin.Prompt
	overlay  tool.Overlay
	base     *tool.Catalog // that mine was made from
	mine     *tool.Catalog
}

// transform has the plugins decide what the model sees of the past, before each of its calls. If they fail, so does the turn. An error means that the
// daemon stops.
func (r *run) transform(ctx context.Context) (err error) {
	if !r.plugins.Transforms() || r.machine != nil && r.machine.Finished() {
		return nil
	}
	made, failed := r.transformed(ctx)
	switch cause := context.Cause(ctx); {
	case r.left():
		return cause
	case cause != nil: // the turn is cancelled, which its first effect sees to
	case failed != nil:
		r.unprepared(&hookFailure{"context_prepare_turn", failed})
	default:
		r.extra = made
	}
	return nil
}

func (r *run) transformed(ctx context.Context) (*turnContext, error) {
	turn := r.input
	if r.machine != nil {
		turn = r.machine.Messages()
	}
	view := r.view(turn)
	past := plugin.PreparedContext{Messages: view.Messages()[:len(r.past):len(r.past)]}
	pc, err := r.plugins.Transform(ctx, &plugin.ContextView{View: view, Host: r.capabilities()}, past)
	if err != nil {
		return nil, err
	}
	made, err := turnContextOf(pc)
	if err != nil || !made.extends() {
		return made, err
	}
	composer, err := ask(r, func(_ context.Context, st *state) (*tool.Composer, error) { return st.plugins.composer, nil })
	if err == nil {
		r.catalog, err = made.catalog(r.catalog, composer)
	}
	return made, err
}

// turnContextOf is what transforms have made, if a model can be shown it.
func turnContextOf(pc plugin.PreparedContext) (*turnContext, error) {
	made := &turnContext{prompts: pc.Prompts, overlay: tool.Overlay{WithoutBase: pc.WithoutBase, Sources: pc.Tools}}
	for _, m := range pc.Messages {
		m.Parts = slices.Clone(m.Parts)
		clean(m.Parts)
		made.messages = append(made.messages, &m)
	}
	return made, graph.ResumeSafe(made.messages)
}

// unprepared ends a turn whose context could not be made, before it begins.
func (r *run) unprepared(failed *hookFailure) {
	r.eng.blame(failed)
	r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", failed)
	if r.machine == nil {
		r.begin.Prepared = &prepared{Abort: new(failed.issue()), Outcome: protocol.OutcomeRuntimeError}
		r.assemble()
		return
	}
	r.machine.Fail(protocol.OutcomeRuntimeError, failed.issue())
	r.noteNodes()
}

// shown is the history before the turn as the model sees it.
func (r *run) shown() []*protocol.Message {
	if r.extra == nil {
		return r.past
	}
	return slices.Clip(r.extra.messages)
}

func (c *turnContext) extends() bool {
	return c != nil && (c.overlay.WithoutBase || len(c.overlay.Sources) > 0)
}

// catalog is a session's catalog with what the turn adds.
func (c *turnContext) catalog(base *tool.Catalog, tools *tool.Composer) (*tool.Catalog, error) {
	if !c.extends() {
		return base, nil
	}
	if c.base == base {
		return c.mine, nil
	}
	mine, err := tools.With(c.overlay)
	if err == nil {
		c.base, c.mine = base, mine
	}
	return mine, err
}
