package engine

import (
	"context"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// rendered is the newest environment that plugins were asked for. Turns use it one after the other: as long as they are given
// the same catalog and the same prompt, it stays the same value, which the journal and the adapters know again.
type rendered struct {
	catalog  *tool.Catalog
	preamble preamble // of a catalog of the turn's own
	system   string
	env      *turn.Environment // nil: none was made for the catalog yet
}

func (m *rendered) environment(system string) (turn.Response, error) {
	if m.env == nil || m.system != system {
		env, err := turn.Environment{System: system, Tools: m.catalog.Manifests()}.Exact()
		if err != nil {
			return turn.Response{}, err
		}
		m.system, m.env = system, &env
	}
	return turn.Response{Sync: m.env, Exact: true}, nil
}

// scene is what the actor knows of what an iteration works in, for plugins that must be asked for the rest.
type scene struct {
	catalog  *tool.Catalog
	tools    *tool.Composer
	preamble string // of the catalog, unless the turn has one of its own
	layers   []plugin.Prompt
	memo     *rendered
}

func (st *state) scene(r *run) (s scene, err error) {
	t := st.tools
	s = scene{catalog: t.catalog, tools: t.composer, layers: st.layers(r.begin.Config), memo: &t.rendered}
	if !r.extra.extends() {
		s.preamble, err = st.preamble(t)
	}
	return s, err
}

func (r *run) asksForPrompts() bool { return r.plugins.HasPromptHooks() || r.extra != nil }

// environment is what an iteration of the turn works in. Plugins that have to be asked for it are asked here, and not on
// the actor: they may wait.
func (r *run) environment(ctx context.Context) (turn.Response, error) {
	if r.ahead != nil {
		return r.early()
	}
	if !r.asksForPrompts() {
		return ask(r, func(_ context.Context, st *state) (turn.Response, error) {
			r.catalog = st.tools.catalog
			return st.environment(r.begin.Config)
		})
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
	if s.memo.catalog != r.catalog {
		*s.memo = rendered{catalog: r.catalog, preamble: s.memo.preamble}
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
	return s.memo.environment(system)
}

// system is the system prompt of an iteration.
func (r *run) system(ctx context.Context, preamble string, layers []plugin.Prompt) (string, error) {
	said, err := r.plugins.Prompts(ctx, &plugin.PromptContext{TurnID: r.id, View: r.view(r.machine.Messages()), Inputs: r.forPlugins, Host: r.capabilities()})
	if err != nil {
		return "", err
	}
	return systemOf(r.catalog, preamble, r.extra, said, layers), nil
}

// spoilt ends the turn because a plugin failed where the turn cannot go on without it.
func (r *run) spoilt(ctx context.Context, failed *hookFailure) error {
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	r.eng.blame(failed)
	r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", failed)
	r.machine.Fail(protocol.OutcomeRuntimeError, failed.issue())
	r.noteNodes()
	return nil
}
