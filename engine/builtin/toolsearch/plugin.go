// Package toolsearch is the plugin with the tool_search tool. It finds searchable tools
// that are not in the prompt, so that a session can have many tools. The model can call the
// found tools from its next reply on. Disabled tools are never found. A session has the
// plugin if it has options for it, for example {}.
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

// ID is the id of the plugin.
const ID = "toolsearch"

const toolName = "tool_search"

// describe is the description of tool_search that the model reads.
const describe = "Find tools that are not listed here, by words in their names or descriptions. You can call the tools " +
	"that it finds from your next reply on."

var schema = json.RawMessage(`{
	"type": "object",
	"properties": {"query": {"type": "string", "minLength": 1, "maxLength": 500, "description": "a few words"}},
	"required": ["query"],
	"additionalProperties": false
}`)

// Factory builds the plugin of sessions.
type Factory struct{}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Build implements plugin.Factory.
func (Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return &instance{wanted: len(ctx.Options) > 0}, nil
}

// instance is the tool search of one session.
type instance struct {
	// wanted means that the session has options for the plugin.
	wanted bool

	mu sync.Mutex
	// tools is the catalog before the newest model call. Nil: unknown, because the daemon
	// has restarted since.
	tools []protocol.ToolRecord
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

// look reads the catalog before each model call. It is a prompt hook because tools have no
// access to the catalog.
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

// open adds the found tools to the session, so that the model can call them.
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

// namesOf returns the names of found tools.
func namesOf(hits []hit) []string {
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.Name
	}
	return names
}
