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
	preamble preamble // of a catalog of the turn's own
	catalog  *tool.Catalog
	system   string
	env      *turn.Environment // of catalog and system; nil: none was made yet
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

// scene is what the actor knows of what an iteration works in.
type scene struct {
	catalog  *tool.Catalog
	tools    *tool.Composer
	preamble string // of the catalog, unless the turn has one of its own
	layers   []plugin.Prompt
	memo     *rendered
}

func (st *state) scene(r *run) (s scene, err error) {
	t := st.plugins
	s = scene{catalog: t.catalog, tools: t.composer, layers: st.layers(r.begin.Config), memo: &t.rendered}
	if !r.extra.extends() {
		s.preamble, err = st.preamble(t)
	}
	return s, err
}

// environment is what an iteration of the turn works in. Plugins that have to be asked for it are asked here, and not on
// the actor: they may wait.
func (r *run) environment(ctx context.Context) (turn.Response, error) {
	if r.ahead != nil {
		return r.prefetched()
	}
	s, err := ask(r, func(_ context.Context, st *state) (scene, error) { return st.scene(r) })
	if err != nil {
		return turn.Response{}, err
	}
	return r.compose(ctx, s)
}

func (r *run) compose(ctx context.Context, s scene) (env turn.Response, err error) {
	if r.catalog, err = r.extra.catalog(s.catalog, s.tools); err != nil {
		return env, &hookFailure{"context_prepare_turn", err}
	}
	if r.extra.extends() {
		if s.preamble, err = s.memo.preamble.of(ctx, r.catalog, r.plugins); err != nil {
			return env, err
		}
	}
	system, err := r.system(ctx, s.preamble, s.layers)
	if err != nil {
		return env, &hookFailure{"plugin_prompt", err}
	}
	return s.memo.environment(r.catalog, system)
}

// system is the system prompt of an iteration.
func (r *run) system(ctx context.Context, preamble string, layers []plugin.Prompt) (string, error) {
	said, err := r.plugins.Prompts(ctx, &plugin.PromptContext{TurnID: r.id, View: r.view(r.machine.Messages()), Inputs: r.forPlugins, Host: r.capabilities()})
	if err != nil {
		return "", err
	}
	return systemOf(r.catalog, preamble, r.extra, said, layers), nil
}

// failPrompt ends the turn because a plugin failed where the turn cannot go on without it.
func (r *run) failPrompt(ctx context.Context, failed *hookFailure) error {
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	r.eng.blame(failed)
	r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", failed)
	r.machine.Fail(protocol.OutcomeRuntimeError, failed.issue())
	r.noteNodes()
	return nil
}
