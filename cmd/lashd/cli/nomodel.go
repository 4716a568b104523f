package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lashd/cmd/internal/providers"
	"lashd/rpc/protocol"
)

// noModel replaces the error of a new session that names no model, if there is no default model, by the ways to get one. Other errors
// stay. model is the name that the session was to have.
func (e *environment) noModel(ctx context.Context, err error, model string) error {
	if !lacksModel(err, model) {
		return err
	}
	return errors.New(e.waysToModel(ctx))
}

// lacksModel reports whether a new session failed because there is no default model.
func lacksModel(err error, model string) bool {
	_, data := wireError(err)
	return data != nil && data.Kind == protocol.KindModelNotFound && model == ""
}

// waysInChat returns the ways of waysToModel as the chat offers them.
func (e *environment) waysInChat(ctx context.Context) []string {
	local := "or use a local server: start Ollama, llama.cpp, LM Studio or vLLM, and see lashd model list"
	if all := e.localServers(ctx); len(all) > 0 {
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
func (e *environment) waysToModel(ctx context.Context) string {
	text := "no model is set up, because no provider has an API key. There are three ways to go on:\n" +
		"  lashd login    store a key of Anthropic, OpenAI, Google or another provider\n" +
		"  " + e.wayToLocal(ctx) + "\n" +
		"  lashd demo     try lashd without a model"
	return text
}

// wayToLocal returns the command for a model server on this machine.
func (e *environment) wayToLocal(ctx context.Context) string {
	for _, l := range e.localServers(ctx) {
		return fmt.Sprintf("lashd model use %s/%s    use %s on this machine", l.Name, l.Models[0], l.Title)
	}
	return "a local server: start Ollama, llama.cpp, LM Studio or vLLM; lashd model list then shows its models"
}

// localServers returns the model servers that run on this machine.
func (e *environment) localServers(ctx context.Context) []providers.Local {
	cfg, err := e.config()
	if err != nil {
		return nil
	}
	return providers.FindLocal(ctx, cfg.servers(e.keySources(cfg, "")))
}

// noteLocal prints the models of servers on this machine, which lashd uses only if a person chooses one.
func (e *environment) noteLocal(ctx context.Context) {
	for _, l := range e.localServers(ctx) {
		e.note("%s runs at %s with %s; to use one: lashd model use %s/%s", l.Title, l.BaseURL, oneLine(strings.Join(l.Models, ", "), 200), l.Name, oneLine(l.Models[0], 100))
	}
}
