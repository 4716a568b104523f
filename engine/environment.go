package engine

import (
	"context"
	"strings"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// preamble is the driver's part of the prompt for a catalog.
type preamble struct {
	catalog *tool.Catalog
	text    string
}

// environment is what an iteration of the turn works in. Plugins that have to be asked for it are asked here, and not on
// the actor: they may wait.
func (r *run) environment(ctx context.Context) (turn.Response, error) {
	asks := r.plugins.HasPromptHooks() || r.extra != nil
	var tools *tool.Composer
	var layers []plugin.Prompt
	env, err := ask(r, func(_ context.Context, st *state) (turn.Response, error) {
		r.catalog = st.tools.catalog
		if !asks {
			return st.environment(r.begin.Config)
		}
		tools, layers = st.tools.composer, st.layers(r.begin.Config)
		return turn.Response{}, nil
	})
	if err != nil || !asks {
		return env, err
	}
	if r.catalog, err = r.extra.catalog(r.catalog, tools); err != nil {
		return env, &hookFailure{"context_prepare_turn", err}
	}
	system, err := r.system(ctx, layers)
	if err != nil {
		return env, &hookFailure{"plugin_prompt", err}
	}
	return turn.Response{Sync: &turn.Environment{System: system, Tools: r.catalog.Manifests()}}, nil
}

// system is the system prompt of an iteration: the driver's preamble, what transforms and plugins contribute, and the
// layers of the session and its client.
func (r *run) system(ctx context.Context, layers []plugin.Prompt) (string, error) {
	said, err := r.plugins.Prompts(ctx, &plugin.PromptContext{TurnID: r.id, View: r.view(r.machine.Messages()), Host: r.capabilities()})
	if err != nil {
		return "", err
	}
	if r.preamble.catalog != r.catalog {
		r.preamble = preamble{r.catalog, r.plugins.Driver().Preamble(r.catalog.Manifests())}
	}
	all := []plugin.Prompt{{Slot: plugin.SlotExecution, Content: r.preamble.text}}
	if r.extra != nil {
		all = append(all, r.extra.prompts...)
	}
	all = append(append(all, said...), layers...)
	return strings.ToValidUTF8(plugin.RenderPrompts(plugin.Fits(r.catalog), all), "\uFFFD"), nil
}

// spoilt ends the turn because a plugin failed where the turn cannot go on without it.
func (r *run) spoilt(ctx context.Context, failed *hookFailure) error {
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", failed)
	r.machine.Fail(protocol.OutcomeRuntimeError, failed.issue())
	r.noteNodes()
	return nil
}
