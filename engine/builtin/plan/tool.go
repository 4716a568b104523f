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

const describe = "Write down the plan for the task, or how far it is. The steps that are given replace the whole plan; none clear " +
	"it. People see the plan while you work."

const guidance = `# Plans
- Use update_plan for tasks of several steps, and not for what is done in one or two.
- Keep steps short, and say what each achieves. One step at a time is inProgress; mark it completed before you begin the next.
- When the plan turns out wrong, change it, and say why in a sentence.`

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

// Execute implements tool.Provider.
func (i *instance) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	var p Plan
	if err := json.Unmarshal(call.Args, &p); err != nil {
		return tool.Result{}, err // the arguments fit the schema: this does not happen
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

func (p Plan) summary() string {
	count := map[Status]int{}
	for _, s := range p.Steps {
		count[s.Status]++
	}
	return fmt.Sprintf("The plan has %d steps: %d completed, %d in progress, %d pending.",
		len(p.Steps), count[Completed], count[InProgress], count[Pending])
}

// tell shows a new plan to observers. Only a call that succeeded has one.
func tell(_ context.Context, tc *plugin.ToolResultContext) ([]plugin.Directive, error) {
	if tc.Tool != toolName || len(tc.Output.Value) == 0 {
		return nil, nil
	}
	return []plugin.Directive{plugin.Tell(plugin.RuntimeEvent{Kind: "custom", Name: ID, Payload: tc.Output.Value})}, nil
}
