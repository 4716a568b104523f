package engine

import (
	"context"

	"lashd/engine/plugin"
	"lashd/engine/structured"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// rendered caches the newest environment of a plugin set. The turns of the session use it one after the other.
// While catalog and prompt stay the same, the environment is the same value, which lets the journal store it once
// and adapters reuse what they derived from it.
type rendered struct {
	preamble preamble // for catalogs that transforms extend
	catalog  *tool.Catalog
	system   string
	env      *turn.Environment // built from catalog and system; nil: not built yet
}

// environment returns the answer to a sync effect, cached if nothing changed. It fails if the environment cannot
// be stored as JSON without loss.
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

// environment returns the prompt and tools for one iteration of the turn. It calls the driver and prompt hooks on
// the turn's goroutine. A *hookFailure means that the turn cannot go on without what a hook failed to provide.
func (p *prompt) environment(ctx context.Context) (env turn.Response, err error) {
	t := p.set
	if p.catalog, err = p.extra.catalog(t.catalog.Load(), t.composer); err != nil {
		return env, &hookFailure{"context_prepare_turn", err}
	}
	preamble := t.preambleOf
	if p.extra.changesTools() {
		preamble = t.rendered.preamble.of // one of its own
	}
	made, err := preamble(ctx, p.catalog, p.seams.plugins)
	if err != nil {
		return env, err
	}
	system, err := p.system(ctx, made.Text, t.layers(p.seams.journal.begin.Config))
	if err != nil {
		return env, &hookFailure{"plugin_prompt", err}
	}
	if made.Language == "" {
		return t.rendered.environment(p.catalog, structured.System(system, p.seams.journal.begin.Schema))
	}
	if err := p.settleLanguage(ctx, made.Language); err != nil {
		return env, err
	}
	env, err = t.rendered.environment(p.catalog, system) // the driver says how the turn ends with a value
	if err == nil {
		env.Sync, err = p.withCode(ctx, *env.Sync, made.Language)
	}
	return env, err
}

// withCode returns an environment with what the driver tells the model about the session's code. Without it the
// environment stays in the cache.
func (p *prompt) withCode(ctx context.Context, env turn.Environment, language string) (*turn.Environment, error) {
	globals, err := p.seams.plugins.Globals(ctx)
	if err != nil && context.Cause(ctx) == nil {
		p.seams.eng.group.LogPanic(err)
		p.seams.eng.Log.Warn("cannot list the globals of a code executor", "session", p.seams.session.id, "error", err)
	}
	code, err := turn.CodeEnvironment{Language: language, Globals: globals, Context: p.usedTokens()}.Exact()
	env.Code = &code
	return &env, err
}

// system returns the system prompt of an iteration, with the contributions of prompt hooks.
func (p *prompt) system(ctx context.Context, preamble string, layers []plugin.Prompt) (string, error) {
	s := p.seams
	said, err := s.plugins.Prompts(ctx, &plugin.PromptContext{TurnID: s.store.turn, View: s.view(s.journal.messages()), Inputs: s.inputs, Host: s.capabilities()})
	if err != nil {
		return "", err
	}
	return systemOf(p.catalog, preamble, p.extra, said, layers), nil
}

// failPrompt ends the turn with a runtime error because a required hook failed. If the context ended first, that
// decides the outcome instead.
func (r *run) failPrompt(ctx context.Context, failed *hookFailure) error {
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	r.eng.group.LogPanic(failed)
	r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", failed)
	r.journal.fail(protocol.OutcomeRuntimeError, failed.issue())
	return nil
}
