// Package batch is the plugin with which the model makes several calls in one. Each of them passes all that a call passes.
package batch

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// ID is the plugin's, and the name of its tool.
const ID = "batch"

// maxCalls is how many calls of a batch are made.
const maxCalls = 25

const describe = "Make up to 25 calls of other tools at once, when none needs the result of another. They run side by side as far " +
	"as their tools allow. The results come in the order of the calls; one that fails does not keep the others from being made."

var schema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"calls": {
			"type": "array",
			"minItems": 1,
			"items": {
				"type": "object",
				"properties": {
					"name": {"type": "string", "minLength": 1},
					"args": {"type": "object"}
				},
				"required": ["name"],
				"additionalProperties": false
			}
		}
	},
	"required": ["calls"],
	"additionalProperties": false
}`)

// Factory gives every session the tool.
type Factory struct{}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Build implements plugin.Factory.
func (f Factory) Build(plugin.BuildContext) (plugin.Plugin, error) { return f, nil }

// Register implements plugin.Plugin.
func (f Factory) Register(r *plugin.Registrar) error {
	r.Tools().Add(f)
	return nil
}

// Tools implements tool.Provider. The tool has no effects but those of the calls, which are kept: so it may be run again.
func (Factory) Tools() []tool.Tool {
	return []tool.Tool{{
		Manifest: protocol.ToolManifest{Name: ID, Description: describe, Input: schema, Kind: protocol.ToolKindThink},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe, Serial: true},
	}}
}

// Result is what one call of a batch came to.
type Result struct {
	Index    int                   `json:"index"`
	Name     string                `json:"name"`
	Status   protocol.OutputStatus `json:"status"`
	Code     string                `json:"code,omitempty"` // of a failure
	Text     string                `json:"text,omitempty"`
	Value    json.RawMessage       `json:"value,omitempty"` // where there is no text
	Artifact *protocol.ArtifactRef `json:"artifact,omitempty"`
}

// Execute implements tool.Provider.
func (Factory) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	var args struct {
		Calls []struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err // the arguments fit the schema: this does not happen
	}
	results := make([]Result, len(args.Calls))
	var wanted []tool.Request
	var at []int
	for i, c := range args.Calls {
		if out, refused := refusal(i, c.Name); refused {
			results[i] = result(i, c.Name, out)
			continue
		}
		wanted, at = append(wanted, tool.Request{Name: c.Name, Args: c.Args}), append(at, i)
	}
	made, err := call.Host.Call(ctx, wanted)
	if err != nil {
		return tool.Result{}, err
	}
	for n, out := range made {
		results[at[n]] = result(at[n], args.Calls[at[n]].Name, out)
	}
	value, err := json.Marshal(map[string][]Result{"results": results})
	return tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputSuccess, Value: value}}, err
}

// refusal is why a call of a batch is not made.
func refusal(i int, name string) (out protocol.ToolOutput, refused bool) {
	switch {
	case i >= maxCalls:
		text := fmt.Sprintf("a batch makes %d calls: make this one with another batch", maxCalls)
		return protocol.Fail(protocol.FailInvalidRequest, "batch_too_long", text, protocol.FromTool), true
	case name == ID:
		return protocol.Fail(protocol.FailInvalidRequest, "batch_nested", "a batch makes no batches", protocol.FromTool), true
	}
	return out, false
}

func result(i int, name string, out protocol.ToolOutput) Result {
	r := Result{Index: i, Name: name, Status: out.Status, Text: out.Text, Artifact: out.Artifact}
	if out.Failure != nil {
		r.Code = out.Failure.Code
	}
	if r.Text == "" {
		r.Value = out.Value
	}
	return r
}
