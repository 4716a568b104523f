// Package batch is the plugin with the batch tool, which makes several calls of other tools
// at once. Each of these calls goes through the same checks, approvals and hooks as a call
// by the model.
package batch

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// ID is the id of the plugin and the name of its tool.
const ID = "batch"

// maxCalls is the number of calls in a batch that are made. Further calls fail.
const maxCalls = 25

// describe is the description of the tool that the model reads.
const describe = "Make up to 25 calls of other tools at once. Use it for calls that do not depend on each other's results. They run in " +
	"parallel where their tools allow it. Results are in the order of the calls. A failed call does not stop the others."

// schema does not limit the number of calls: beyond maxCalls each call fails by itself, and
// the others are made.
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

// Factory builds the plugin. The plugin has no state, so all sessions share it.
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

// Tools implements tool.Provider. The batch itself has no effects: the results of its calls
// are stored, so a batch can be repeated after a crash.
func (Factory) Tools() []tool.Tool {
	return []tool.Tool{{
		Manifest: protocol.ToolManifest{Name: ID, Description: describe, Input: schema, Kind: protocol.ToolKindThink, Activation: protocol.ActivateDirect},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe, Serial: true},
	}}
}

// Result is the result of one call in a batch, as the model reads it.
type Result struct {
	Index  int                   `json:"index"`
	Name   string                `json:"name"`
	Status protocol.OutputStatus `json:"status"`
	// Code is the failure code. Empty for a success.
	Code string `json:"code,omitempty"`
	Text string `json:"text,omitempty"`
	// Value is set if the call returned no text.
	Value    json.RawMessage       `json:"value,omitempty"`
	Artifact *protocol.ArtifactRef `json:"artifact,omitempty"`
}

// Execute implements tool.Provider. It makes the allowed calls through the host, which
// checks and runs each of them. Their attachments become those of the batch, in the order of the calls.
func (Factory) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	var args struct {
		Calls []struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err // cannot happen: the arguments match the schema
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
	var files []protocol.Attachment
	for n, out := range made {
		results[at[n]] = result(at[n], args.Calls[at[n]].Name, out)
		files = append(files, out.Attachments...)
	}
	value, err := json.Marshal(map[string][]Result{"results": results})
	return tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputSuccess, Value: value, Attachments: files}}, err
}

// refusal returns the failure of a call that a batch does not make: one beyond maxCalls, or
// a nested batch.
func refusal(i int, name string) (out protocol.ToolOutput, refused bool) {
	switch {
	case i >= maxCalls:
		text := fmt.Sprintf("a batch makes at most %d calls; make this call in another batch", maxCalls)
		return protocol.Fail(protocol.FailInvalidRequest, "batch_too_long", text, protocol.FromTool), true
	case name == ID:
		return protocol.Fail(protocol.FailInvalidRequest, "batch_nested", "a batch cannot contain a batch", protocol.FromTool), true
	}
	return out, false
}

// result converts the output of a call. The model gets the text, or else the value.
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
