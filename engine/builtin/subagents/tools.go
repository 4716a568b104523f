package subagents

import (
	"context"
	"encoding/json"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

const (
	spawnTool = "spawn_agent"
	sendTool  = "send_agent"
	waitTool  = "wait_agents"
	listTool  = "list_agents"
	closeTool = "close_agent"
)

// definition is a tool, and what it does.
type definition struct {
	describe string
	input    string
	replay   protocol.Replay
	do       func(context.Context, *request) (any, error)
}

func definitions() map[string]definition {
	return map[string]definition{
		spawnTool: {
			describe: "Have a new agent work on a task, beside you. It knows nothing but what you give it. You are told when it ends, or wait for it.",
			replay:   protocol.ReplayIdempotent, do: spawn,
			input: `{
				"type": "object",
				"properties": {
					"task": {"type": "string", "minLength": 1, "description": "all that the agent needs to know"},
					"name": {"type": "string", "maxLength": 80, "description": "lower case letters, digits and _"},
					"capability": {"type": "string", "enum": ["explore", "peer"], "description": "explore, which is the default: it reads and searches; peer: it may do what you may"},
					"seed": {
						"type": "object",
						"properties": {
							"turns": {"type": "integer", "minimum": 1, "maximum": 20, "description": "it is told what was said in your last turns"},
							"values": {"description": "data for it"}
						},
						"additionalProperties": false
					},
					"outputSchema": {"type": "object", "description": "JSON Schema of its answer; absent: text"},
					"wait": {"type": "boolean", "description": "wait for its answer"},
					"last": {"type": "boolean", "description": "it is closed after this task"}
				},
				"required": ["task"],
				"additionalProperties": false
			}`,
		},
		sendTool: {
			describe: "Give an agent more to do. It remembers what it did before, and begins once it is done with that.",
			replay:   protocol.ReplayIdempotent, do: send,
			input: `{
				"type": "object",
				"properties": {
					"name": {"type": "string", "minLength": 1},
					"task": {"type": "string", "minLength": 1},
					"last": {"type": "boolean", "description": "it is closed after this task"}
				},
				"required": ["name", "task"],
				"additionalProperties": false
			}`,
		},
		waitTool: {
			describe: "Wait for agents, and read what they answer.",
			replay:   protocol.ReplaySafe, do: wait,
			input: `{
				"type": "object",
				"properties": {
					"names": {"type": "array", "items": {"type": "string"}, "maxItems": 100, "description": "absent: all that are not closed"},
					"until": {"type": "string", "enum": ["taskCompleted", "terminal"], "description": "taskCompleted, which is the default: the newest task of each is over; terminal: it is closed"},
					"rule": {"type": "string", "enum": ["all", "any"], "description": "all is the default"},
					"timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 86400}
				},
				"additionalProperties": false
			}`,
		},
		listTool: {
			describe: "List your agents, with what each is doing, and the newest answer.",
			replay:   protocol.ReplaySafe, do: listAgents,
			input: `{"type": "object", "properties": {}, "additionalProperties": false}`,
		},
		closeTool: {
			describe: "Stop an agent and all that work for it, for good. What they have done stays.",
			replay:   protocol.ReplayIdempotent, do: closeAgent,
			input: `{
				"type": "object",
				"properties": {"name": {"type": "string", "minLength": 1}},
				"required": ["name"],
				"additionalProperties": false
			}`,
		},
	}
}

// Tools implements tool.Provider.
func (l *lead) Tools() []tool.Tool {
	all := definitions()
	var list []tool.Tool
	for _, name := range []string{spawnTool, sendTool, waitTool, listTool, closeTool} {
		d := all[name]
		list = append(list, tool.Tool{
			Manifest: protocol.ToolManifest{Name: name, Description: d.describe, Input: json.RawMessage(d.input), Kind: protocol.ToolKindThink},
			Contract: protocol.ToolContract{Replay: d.replay},
		})
	}
	return list
}
