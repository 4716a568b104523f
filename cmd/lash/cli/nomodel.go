package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providers"
	"lashd/rpc/protocol"
)

// noModel replaces the error of a new session that names no model, if there is no default model, by the ways to get one. Other errors
// stay. model is the name that the session was to have.
func noModel(ctx context.Context, e *daemon.Environment, err error, model string) error {
	if !lacksModel(err, model) {
		return err
	}
	return errors.New(waysToModel(ctx, e))
}

// lacksModel reports whether a new session failed because there is no default model.
func lacksModel(err error, model string) bool {
	_, data := console.WireError(err)
	return data != nil && data.Kind == protocol.KindModelNotFound && model == ""
}

// waysInChat returns the ways of waysToModel as the chat offers them.
func waysInChat(ctx context.Context, e *daemon.Environment) []string {
	local := "or use a local server: start Ollama, llama.cpp, LM Studio or vLLM, and see lash model list"
	if all := localServers(ctx, e); len(all) > 0 {
		local = fmt.Sprintf("/model %s/%s uses %s on this machine", all[0].Name, all[0].Models[0], all[0].Title)
	}
	return []string{
		"No model is set up, because no provider has an API key. There are three ways to go on:",
		"/login stores a key of Anthropic, OpenAI, Google or another provider",
		local,
		"or leave with /quit and run lashd demo, to try lashd without a model",
	}
}

// waysToModel returns what a person without any API key can do. It looks for model servers on this machine.
func waysToModel(ctx context.Context, e *daemon.Environment) string {
	text := "no model is set up, because no provider has an API key. There are three ways to go on:\n" +
		"  lash login    store a key of Anthropic, OpenAI, Google or another provider\n" +
		"  " + wayToLocal(ctx, e) + "\n" +
		"  lashd demo    try lashd without a model"
	return text
}

// wayToLocal returns the command for a model server on this machine.
func wayToLocal(ctx context.Context, e *daemon.Environment) string {
	for _, l := range localServers(ctx, e) {
		return fmt.Sprintf("lash model use %s/%s    use %s on this machine", l.Name, l.Models[0], l.Title)
	}
	return "a local server: start Ollama, llama.cpp, LM Studio or vLLM; lash model list then shows its models"
}

// localServers returns the model servers that run on this machine and list their models without a key.
func localServers(ctx context.Context, e *daemon.Environment) []providers.Local {
	cfg, err := config.Load(e.Home)
	if err != nil {
		return nil
	}
	found := providers.FindLocal(ctx, cfg.Servers(config.OpenKeySources(e.Home, cfg, "")))
	return slices.DeleteFunc(found, func(l providers.Local) bool { return l.KeyWanted })
}

// noteLocal prints the models of servers on this machine, which lashd uses only if a person chooses one.
func noteLocal(ctx context.Context, e *daemon.Environment) {
	for _, l := range localServers(ctx, e) {
		e.Note("%s runs at %s with %s; to use one: lash model use %s/%s", l.Title, l.BaseURL, console.OneLine(strings.Join(l.Models, ", "), 200), l.Name, console.OneLine(l.Models[0], 100))
	}
}
