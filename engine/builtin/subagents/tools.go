package subagents

import (
	"context"
	"encoding/json"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Names of the tools.
const (
	spawnTool = "spawn_agent"
	sendTool  = "send_agent"
	waitTool  = "wait_agents"
	listTool  = "list_agents"
	closeTool = "close_agent"
)

// definition is a tool and its implementation.
type definition struct {
	// describe is the description that the model reads.
	describe string
	// input is the JSON Schema of the arguments.
	input string
	// replay says whether the engine may repeat a call after a crash.
	replay protocol.Replay
	// do runs a call and returns the value for the model.
	do func(context.Context, *request) (any, error)
}

// definitions returns the tools by name.
// Each call builds a new map, which the caller may change.
func definitions() map[string]definition {
	return map[string]definition{
		spawnTool: {
			describe: "Start a new agent that works on a task in parallel. It knows only what you tell it. You are notified when it ends, or can wait for it.",
			replay:   protocol.ReplayIdempotent, do: spawn,
			input: `{
				"type": "object",
				"properties": {
					"task": {"type": "string", "minLength": 1, "description": "everything that the agent needs to know"},
					"name": {"type": "string", "maxLength": 80, "description": "lower-case letters, digits and _"},
					"capability": {"type": "string", "enum": ["explore", "peer"], "description": "explore (default): may only read and search; peer: may do everything that you may"},
					"seed": {
						"type": "object",
						"properties": {
							"turns": {"type": "integer", "minimum": 1, "maximum": 20, "description": "number of your last turns whose messages it gets"},
							"values": {"description": "data for it"}
						},
						"additionalProperties": false
					},
					"outputSchema": {"type": "object", "description": "JSON Schema of its answer (default: text)"},
					"wait": {"type": "boolean", "description": "wait for its answer"},
					"last": {"type": "boolean", "description": "close the agent after this task"}
				},
				"required": ["task"],
				"additionalProperties": false
			}`,
		},
		sendTool: {
			describe: "Give an agent another task. It remembers its earlier work and starts when its current task has ended.",
			replay:   protocol.ReplayIdempotent, do: send,
			input: `{
				"type": "object",
				"properties": {
					"name": {"type": "string", "minLength": 1},
					"task": {"type": "string", "minLength": 1},
					"last": {"type": "boolean", "description": "close the agent after this task"}
				},
				"required": ["name", "task"],
				"additionalProperties": false
			}`,
		},
		waitTool: {
			describe: "Wait for agents and return their answers.",
			replay:   protocol.ReplaySafe, do: wait,
			input: `{
				"type": "object",
				"properties": {
					"names": {"type": "array", "items": {"type": "string"}, "maxItems": 100, "description": "agents to wait for (default: all that are not closed)"},
					"until": {"type": "string", "enum": ["taskCompleted", "terminal"], "description": "taskCompleted (default): until the newest task of each has ended; terminal: until each is closed"},
					"rule": {"type": "string", "enum": ["all", "any"], "description": "wait for all (default) or any"},
					"timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 86400}
				},
				"additionalProperties": false
			}`,
		},
		listTool: {
			describe: "List your agents with their states and newest answers.",
			replay:   protocol.ReplaySafe, do: listAgents,
			input: `{"type": "object", "properties": {}, "additionalProperties": false}`,
		},
		closeTool: {
			describe: "Close an agent and all of its own agents. They stop and get no further tasks; their work is kept.",
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

// inputOf returns the schema of a tool.
func (l *lead) inputOf(name string, d definition) string {
	if name == spawnTool {
		return l.withType(d.input)
	}
	return d.input
}

// Tools implements tool.Provider.
// The order is fixed, so that the model's list of tools does not change between turns.
func (l *lead) Tools() []tool.Tool {
	all := definitions()
	var list []tool.Tool
	for _, name := range []string{spawnTool, sendTool, waitTool, listTool, closeTool} {
		d := all[name]
		list = append(list, tool.Tool{
			Manifest: protocol.ToolManifest{Name: name, Description: d.describe, Input: json.RawMessage(l.inputOf(name, d)), Kind: protocol.ToolKindThink},
			Contract: protocol.ToolContract{Replay: d.replay},
		})
	}
	return list
}
