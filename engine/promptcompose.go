package engine

import (
	"context"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// rendered is the newest environment. Turns use it one after the other: as long as they are given the same catalog and the
// same prompt, it stays the same value, which the journal and the adapters know again.
type rendered struct {
	preamble preamble // for catalogs that transforms extend
	catalog  *tool.Catalog
	system   string
	env      *turn.Environment // built from catalog and system; nil: not built yet
}

func (m *rendered) environment(catalog *tool.Catalog, system string) (turn.Response, error) {
	if m.env == nil || m.catalog != catalog || m.system != system {
		env, err := turn.Environment{System: system, Tools: catalog.Manifests()}.Exact()
		if err != nil {
			return turn.Response{}, err
		}
		m.catalog, m.system, m.env = catalog, system, &env
	}
	return turn.Response{Sync: m.env, Exact: true}, nil
}

// environment is what an iteration of the turn works in.
func (p *prompt) environment(ctx context.Context) (env turn.Response, err error) {
	t := p.set
	if p.catalog, err = p.extra.catalog(t.catalog.Load(), t.composer); err != nil {
		return env, &hookFailure{"context_prepare_turn", err}
	}
	preamble := t.preambleOf
	if p.extra.changesTools() {
		preamble = t.rendered.preamble.of // one of its own
	}
	text, err := preamble(ctx, p.catalog, p.seams.plugins)
	if err != nil {
		return env, err
	}
	system, err := p.system(ctx, text, t.layers(p.seams.journal.begin.Config))
	if err != nil {
		return env, &hookFailure{"plugin_prompt", err}
	}
	return t.rendered.environment(p.catalog, system)
}

// system is the system prompt of an iteration.
func (p *prompt) system(ctx context.Context, preamble string, layers []plugin.Prompt) (string, error) {
	s := p.seams
	said, err := s.plugins.Prompts(ctx, &plugin.PromptContext{TurnID: s.store.turn, View: s.view(s.journal.messages()), Inputs: s.inputs, Host: s.capabilities()})
	if err != nil {
		return "", err
	}
	return systemOf(p.catalog, preamble, p.extra, said, layers), nil
}

// failPrompt ends the turn because a plugin failed where the turn cannot go on without it.
func (r *run) failPrompt(ctx context.Context, failed *hookFailure) error {
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	r.eng.group.LogPanic(failed)
	r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", failed)
	r.journal.fail(protocol.OutcomeRuntimeError, failed.issue())
	return nil
}
