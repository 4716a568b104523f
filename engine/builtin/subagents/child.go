package subagents

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// child returns the settings of an agent's session. It inherits the options of this
// session. Its authority is limited to the capability and to the remaining depth. With a
// seed it starts with messages of recent turns.
// a holds the arguments of spawn_agent, and path the new agent's path. The engine limits the
// authority further by that of this session.
func (q *request) child(ctx context.Context, view *plugin.View, path string, a *spawnArgs) (*protocol.SessionNewParams, error) {
	p := plugin.NewChild(protocol.SessionStart{})
	p.Title, p.UsageLabel = label(path), "subagent"
	options, err := json.Marshal(Options{Path: path, Output: a.Output, Hidden: q.options.Hidden})
	if err != nil {
		return nil, err
	}
	p.Options = maps.Clone(view.Session.Config.Options)
	if p.Options == nil {
		p.Options = protocol.PluginOptions{}
	}
	p.Options[ID] = options
	kind, err := q.typeNamed(a.Type)
	if err != nil {
		return nil, err
	}
	capability := cmp.Or(a.Capability, Explore)
	if kind != nil && a.Capability != Explore {
		capability = Capability(kind.Name) // hooks and lists of agents show the type
	}
	p.Authority = protocol.Authority{Hidden: q.options.Hidden, Subagent: &protocol.Subagent{
		Parent: q.SessionID, Capability: string(capability), Depth: q.depth + 1, MaxDepth: q.maxDepth,
	}}
	if capability == Explore {
		if p.Authority.Tools, err = q.harmless(ctx); err != nil {
			return nil, err
		}
	}
	if kind != nil {
		records, err := q.host.State.Catalog(ctx, "")
		if err != nil {
			return nil, err
		}
		kind.limit(p, records, q.knows)
	}
	if a.Seed.Turns > 0 {
		p.Nodes = said(view.Messages(), a.Seed.Turns)
	}
	return p, nil
}

// harmless returns the tools that only read or search, and those that report a result.
// They are the tools of an agent with the capability explore. Tools that are added later are not
// among them.
func (q *request) harmless(ctx context.Context) ([]string, error) {
	records, err := q.host.State.Catalog(ctx, "")
	if err != nil {
		return nil, err
	}
	names := []string{submitError, submitResult}
	for _, t := range records {
		if t.Member && (t.Kind == protocol.ToolKindRead || t.Kind == protocol.ToolKindSearch) {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// said returns the messages of people and the model in the newest turns. Tool calls, tool
// results and other roles are left out.
// A turn begins with a message of a person that has text. The nodes have no ids, which the engine
// adds when it stores them.
func said(messages []protocol.Message, turns int) []protocol.NodeBody {
	from := len(messages)
	for i := len(messages) - 1; i >= 0 && turns > 0; i-- {
		if m := messages[i]; m.Role == protocol.RoleUser && m.Text(protocol.PartText) != "" {
			from = i
			turns--
		}
	}
	var nodes []protocol.NodeBody
	for _, m := range messages[from:] {
		kind, text := protocol.PartText, m.Text(protocol.PartText)
		if m.Role == protocol.RoleAssistant {
			kind, text = protocol.PartProse, m.Answer()
		}
		if strings.TrimSpace(text) == "" || m.Role != protocol.RoleUser && m.Role != protocol.RoleAssistant {
			continue
		}
		nodes = append(nodes, protocol.NodeBody{Message: &protocol.Message{Role: m.Role, Parts: []protocol.Part{{Kind: kind, Text: text}}}})
	}
	return nodes
}
