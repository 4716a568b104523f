// Package toolsearch is the plugin with which the model finds tools that it is not told of, so that a session may have many.
// What it finds can be called from the model's next reply on. Tools that are off stay off: only those that are searchable
// can be found. A session has it if there are options for it, if only {}.
package toolsearch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// ID is the plugin's.
const ID = "toolsearch"

const toolName = "tool_search"

const describe = "Find tools that you are not told of, by words that are in their names or descriptions. What is found can be " +
	"called from your next reply on."

var schema = json.RawMessage(`{
	"type": "object",
	"properties": {"query": {"type": "string", "minLength": 1, "maxLength": 500, "description": "a few words"}},
	"required": ["query"],
	"additionalProperties": false
}`)

// Factory builds the tool search of sessions.
type Factory struct{}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Build implements plugin.Factory.
func (Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return &instance{wanted: len(ctx.Options) > 0}, nil
}

// instance is the tool search of one session.
type instance struct {
	wanted bool

	mu    sync.Mutex
	tools []protocol.ToolRecord // as they were before the newest model call; nil: not known
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	if i.wanted {
		r.Tools().Add(i)
		r.Prompt().Hook(i.look)
		r.ToolResults().After(open)
	}
	return nil
}

// look sees which tools there are. A hook that asks for them is given to prompts, and not to tools.
func (i *instance) look(ctx context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
	state, err := pc.Host.NeedState()
	if err != nil {
		return nil, err
	}
	tools, err := state.Catalog(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tools = tools
	return nil, nil
}

// Tools implements tool.Provider.
func (i *instance) Tools() []tool.Tool {
	return []tool.Tool{{
		Manifest: protocol.ToolManifest{Name: toolName, Description: describe, Input: schema, Kind: protocol.ToolKindSearch},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
	}}
}

// open lets the model call what a search has found and it cannot call yet.
func open(ctx context.Context, tc *plugin.ToolResultContext) ([]plugin.Directive, error) {
	if tc.Tool != toolName || len(tc.Output.Value) == 0 {
		return nil, nil
	}
	var found answer
	if err := json.Unmarshal(tc.Output.Value, &found); err != nil {
		return nil, err
	}
	closed := slices.DeleteFunc(found.Tools, func(h hit) bool { return h.Member })
	if len(closed) == 0 {
		return nil, nil
	}
	state, err := tc.Host.NeedState()
	if err != nil {
		return nil, err
	}
	_, err = state.SetMembership(ctx, "", namesOf(closed), true)
	return nil, err
}

func namesOf(hits []hit) []string {
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.Name
	}
	return names
}
