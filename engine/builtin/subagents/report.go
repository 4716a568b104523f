package subagents

import (
	"context"
	"encoding/json"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Tools with which an agent reports its result.
const (
	submitError  = "submit_error"
	submitResult = "submit_result"
)

// report provides the tools with which an agent ends its work.
type report struct {
	// schema is the JSON Schema of the result. Empty: the agent's last message is the
	// result.
	schema json.RawMessage
}

// guidance returns the part of the prompt about structured results, or "".
// It begins with a newline, because it follows other text.
func (r *report) guidance() string {
	if len(r.schema) == 0 {
		return ""
	}
	return "\nThe answer must be structured data: call submit_result with it when it is complete."
}

// errorSchema is the schema of submit_error. It requires a reason, which becomes the message of
// the failed task.
var errorSchema = json.RawMessage(`{
	"type": "object",
	"properties": {"reason": {"type": "string", "minLength": 1}},
	"required": ["reason"],
	"additionalProperties": false
}`)

// Tools implements tool.Provider.
// submit_result exists only if the agent has an output schema, which its argument must match.
func (r *report) Tools() []tool.Tool {
	list := []tool.Tool{{
		Manifest: protocol.ToolManifest{
			Name: submitError, Input: errorSchema, Kind: protocol.ToolKindThink,
			Description: "End your work without a result because the task cannot be done. Give the reason and what you have found out.",
		},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
	}}
	if len(r.schema) == 0 {
		return list
	}
	input := []byte(`{"type":"object","properties":{"result":` + string(r.schema) + `},"required":["result"],"additionalProperties":false}`)
	return append(list, tool.Tool{
		Manifest: protocol.ToolManifest{
			Name: submitResult, Input: input, Kind: protocol.ToolKindThink, Description: "End your work and return its result.",
		},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
	})
}

// Execute implements tool.Provider. The control in the result ends the agent's turn, as a
// success with the value or as a failure with the reason.
func (r *report) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	var args struct {
		Reason string          `json:"reason"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err // cannot happen: the arguments match the schema
	}
	if call.Name == submitResult {
		return tool.Result{Output: protocol.Succeed("Result submitted."), Control: &protocol.ToolControl{Kind: protocol.ControlFinish, Value: args.Result}}, nil
	}
	reason, err := json.Marshal(args.Reason)
	return tool.Result{Output: protocol.Succeed("Error submitted."), Control: &protocol.ToolControl{Kind: protocol.ControlFail, Value: reason}}, err
}
