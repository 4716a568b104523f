// Package modelquery is the plugin with the llm_query tool, with which the agent asks another model one question, usually a cheaper
// one. The call sees no history and has no tools. Its tokens are on the ledger of the session under the name of the tool. A session
// has the tool if its options for the plugin name a model.
package modelquery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"lashd/engine/plugin"
	"lashd/engine/structured"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// ID is the id of the plugin, the name of its tool, and the source of its calls in the usage ledger.
const ID = "llm_query"

// Defaults and limits.
const (
	defaultPerTurn   = 20
	defaultMaxOutput = 4_096     // tokens
	maxArgs          = 256 << 10 // bytes of a call's arguments
)

// describe is the description of the tool that the model reads.
const describe = "Ask another model one question, for example to summarize, classify or extract from a text. It sees only this task and these " +
	"inputs: no history, no files, no tools. With outputSchema the result is JSON that matches the schema."

var schema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"task": {"type": "string", "minLength": 1, "description": "question or instruction, complete in itself"},
		"inputs": {"type": "string", "description": "text that the task is about"},
		"outputSchema": {"type": "object", "description": "JSON Schema of the answer (default: text)"}
	},
	"required": ["task"],
	"additionalProperties": false
}`)

// Options are the settings of the plugin in the configuration of a session.
type Options struct {
	Model     string `json:"model"`     // name of a configured model; "" means that the session has no llm_query
	PerTurn   int    `json:"perTurn"`   // calls in one turn; default 20
	MaxOutput int64  `json:"maxOutput"` // tokens of an answer; default 4,096
}

// Factory builds the plugin of a session from its Options.
type Factory struct{}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Build implements plugin.Factory. It does not check that the model exists, because models can be configured later.
func (Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	i := &instance{Options: Options{PerTurn: defaultPerTurn, MaxOutput: defaultMaxOutput}}
	if len(ctx.Options) > 0 {
		if err := json.Unmarshal(ctx.Options, &i.Options); err != nil {
			return nil, fmt.Errorf("options: %w", err)
		}
	}
	if i.PerTurn < 1 || i.MaxOutput < 1 {
		return nil, errors.New("options: perTurn and maxOutput must be at least 1")
	}
	return i, nil
}

// instance is the plugin of one session.
type instance struct {
	Options

	mu   sync.Mutex
	turn protocol.TurnID // of the newest call
	made int             // calls of that turn, in this run of the daemon
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	if i.Model != "" {
		r.Tools().Add(i)
	}
	return nil
}

// Tools implements tool.Provider. A call changes nothing but costs tokens, so it may be repeated after a crash.
func (i *instance) Tools() []tool.Tool {
	return []tool.Tool{{
		Manifest: protocol.ToolManifest{Name: ID, Description: describe, Input: schema, Kind: protocol.ToolKindThink},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
	}}
}

// Execute implements tool.Provider.
func (i *instance) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	var args struct {
		Task   string          `json:"task"`
		Inputs string          `json:"inputs"`
		Schema json.RawMessage `json:"outputSchema"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err // cannot happen: the arguments match the schema
	}
	models, err := plugin.ForTool(call).NeedModels()
	if err != nil {
		return tool.Result{}, err
	}
	wanted, err := structured.Schema(args.Schema)
	switch {
	case err != nil:
		return failed(protocol.FailInvalidRequest, "invalid_schema", "outputSchema "+err.Error()), nil
	case len(call.Args) > maxArgs:
		return failed(protocol.FailInvalidRequest, "too_large", fmt.Sprintf("the arguments have %d bytes, at most %d", len(call.Args), maxArgs)), nil
	case !i.admit(call.TurnID):
		return failed(protocol.FailResourceLimit, "query_budget", fmt.Sprintf("this turn has made %d calls of %s, which is its limit", i.PerTurn, ID)), nil
	}
	text := args.Task
	if args.Inputs != "" {
		text += "\n\n<inputs>\n" + args.Inputs + "\n</inputs>"
	}
	r, err := models.Complete(ctx, &protocol.CompletionParams{
		Model: i.Model, Text: text, Schema: wanted, Label: ID, Generation: protocol.GenerationOptions{MaxOutput: i.MaxOutput},
	})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		return failed(protocol.FailExternal, "query_failed", fmt.Sprintf("the model %s did not answer: %v", i.Model, err)), nil
	}
	return result(r), nil
}

// admit counts a call of a turn, and reports whether the turn may make it.
func (i *instance) admit(turn protocol.TurnID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.turn != turn {
		i.turn, i.made = turn, 0
	}
	i.made++
	return i.made <= i.PerTurn
}

// result returns the answer of the model as the result of the tool. An answer without the value that was asked for, and one that
// stopped without text, is a failure.
func result(r *protocol.CompletionResult) tool.Result {
	switch {
	case r.Problem != "":
		return failed(protocol.FailExecution, "invalid_value", fmt.Sprintf("the answer does not match outputSchema: %s. The answer was:\n%s", r.Problem, r.Text))
	case r.Value != nil:
		out := protocol.Succeed(string(r.Value))
		out.Value = r.Value
		return tool.Result{Output: out}
	case r.Text == "":
		return failed(protocol.FailExternal, "empty_answer", "the model answered with nothing; it stopped with "+string(r.Stop))
	case r.Stop == protocol.StopOutputLimit:
		return tool.Result{Output: protocol.Succeed(r.Text + "\n\n[The answer was cut off at the output limit.]")}
	}
	return tool.Result{Output: protocol.Succeed(r.Text)}
}

// failed returns a failure of the tool.
func failed(class protocol.FailureClass, code, text string) tool.Result {
	return tool.Result{Output: protocol.Fail(class, code, text, protocol.FromTool)}
}
