package plan

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

const toolName = "update_plan"

// describe is the description of update_plan that the model reads.
const describe = "Write or update the plan for the task. The given steps replace the whole plan; an empty list clears " +
	"it. The user sees the plan while you work."

// guidance is the part of the prompt about plans.
const guidance = `# Plans
- Use update_plan for tasks with several steps, not for tasks of one or two steps.
- Keep steps short and say what each achieves. Have one step inProgress at a time; mark it completed before you start the next.
- If the plan turns out to be wrong, change it and say why in one sentence.`

var schema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"steps": {
			"type": "array",
			"maxItems": 50,
			"items": {
				"type": "object",
				"properties": {
					"text": {"type": "string", "minLength": 1, "maxLength": 500},
					"status": {"type": "string", "enum": ["pending", "inProgress", "completed"]}
				},
				"required": ["text", "status"],
				"additionalProperties": false
			}
		}
	},
	"required": ["steps"],
	"additionalProperties": false
}`)

// Tools implements tool.Provider.
func (i *instance) Tools() []tool.Tool {
	return []tool.Tool{{
		Manifest: protocol.ToolManifest{Name: toolName, Description: describe, Input: schema, Kind: protocol.ToolKindThink},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe, Serial: true},
	}}
}

// Execute implements tool.Provider. The result has the plan as its value, which publish
// sends to clients.
func (i *instance) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	var p Plan
	if err := json.Unmarshal(call.Args, &p); err != nil {
		return tool.Result{}, err // cannot happen: the arguments match the schema
	}
	i.set(p, 0)
	value, err := json.Marshal(p.whole())
	if err != nil {
		return tool.Result{}, err
	}
	out := protocol.Succeed(p.summary())
	out.Value = value
	return tool.Result{Output: out}, nil
}

// summary returns the text of the result for the model.
func (p Plan) summary() string {
	count := map[Status]int{}
	for _, s := range p.Steps {
		count[s.Status]++
	}
	return fmt.Sprintf("The plan has %d steps: %d completed, %d in progress, %d pending.",
		len(p.Steps), count[Completed], count[InProgress], count[Pending])
}

// publish notifies clients of a new plan. It skips calls that failed, which have no value.
func publish(_ context.Context, tc *plugin.ToolResultContext) ([]plugin.Directive, error) {
	if tc.Tool != toolName || len(tc.Output.Value) == 0 {
		return nil, nil
	}
	return []plugin.Directive{plugin.Tell(plugin.RuntimeEvent{Kind: "custom", Name: ID, Payload: tc.Output.Value})}, nil
}
