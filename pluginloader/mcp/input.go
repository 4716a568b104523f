package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/internal/mcpinput"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// Source is the servers of a plugin, or a server that a client adds to a session.
type Source struct {
	Plugin  string // its name; empty: a client adds the server
	Servers *Part
}

// Inputs is the factory of the plugin that gives people the prompts and resources of MCP servers: prompts as slash commands, and resources
// that they name in an input. The servers are those of all loaded plugins, and then those that a client adds to the session. The loader
// adds one to each set of plugins. lashd asks a server only when a turn begins whose input names it. Of several servers of one name, only
// that of the first source counts. It does not change.
type Inputs struct{ sources sources }

// NewInputs returns a factory for sources in the order in which their plugins register.
func NewInputs(all []Source) *Inputs { return &Inputs{all} }

// ID implements plugin.Factory.
func (*Inputs) ID() string { return protocol.ServersID }

// Build implements plugin.Factory.
func (f *Inputs) Build(c plugin.BuildContext) (plugin.Plugin, error) { return &instance{f, c}, nil }

// instance is the plugin of one session. It has no state.
type instance struct {
	*Inputs
	context plugin.BuildContext
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	r.Turn().Input(plugin.TurnInput{Schema: inputSchema})
	r.Turn().Before(i.beforeTurn)
	r.Operations().Query(protocol.OperationInfo{Name: protocol.ServersID, Description: "Lists the prompts of MCP servers."}, i.prompts)
	r.Operations().Query(protocol.OperationInfo{Name: protocol.ResourcesID, Description: "Lists the resources of MCP servers."}, i.resources)
	r.Operations().Query(protocol.OperationInfo{Name: protocol.CompletionsID, Description: "Completes arguments of prompts and resource templates."}, i.complete)
	return nil
}

// inputSchema is the schema of the turn input, a protocol.ServersInput.
var inputSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"prompt": {
			"type": "object",
			"properties": {"name": {"type": "string", "minLength": 1, "maxLength": 200}, "arguments": {"type": "string", "maxLength": 100000}},
			"required": ["name"], "additionalProperties": false
		},
		"resources": {
			"type": "array", "maxItems": 16,
			"items": {
				"type": "object",
				"properties": {"server": {"type": "string", "minLength": 1, "maxLength": 200}, "uri": {"type": "string", "minLength": 1, "maxLength": 4096}},
				"required": ["server", "uri"], "additionalProperties": false
			}
		}
	},
	"additionalProperties": false
}`)

// at returns the session for servers. Its sandbox is the narrowest of those in the settings of the turn, in the settings when the plugins were
// opened, and in the authority of the session, which never changes. The ceiling of a turn does not count: it is of inputs that other sessions
// and plugins send, and these cannot name prompts or resources. Only a client can, and no ceiling limits a client. A process of a server
// works for one mode and one workspace, so a session never reaches one that was started for a wider session.
func (i *instance) at(v *plugin.View) Session {
	return Session{ID: i.context.SessionID, Cwd: i.context.Cwd, Sandbox: authority.Narrowest(i.context.Sandbox, v.Session.Config.Approval.Sandbox)}
}

// now returns the sources of the session: those of plugins, and those that a client adds now.
func (i *instance) now() sources {
	if i.context.Servers == nil {
		return i.sources
	}
	all := slices.Clone(i.sources)
	for _, p := range i.context.Servers() {
		if added, ok := p.(interface{ part() *Part }); ok {
			all = append(all, Source{Servers: added.part()})
		}
	}
	return all
}

// part returns the servers themselves. With it, instance finds those in what a client adds.
func (p *Part) part() *Part { return p }

// sources are servers in the order in which they count.
type sources []Source

// servers returns the servers of the first source that has a server of that name; nil: none.
func (all sources) servers(name string) *Part {
	for _, s := range all {
		if s.Servers.Has(name) {
			return s.Servers
		}
	}
	return nil
}

// promptsOf returns the prompts of the servers of a source that no earlier source has.
func (all sources) promptsOf(s Source) []Prompt {
	return slices.DeleteFunc(s.Servers.Prompts(), func(p Prompt) bool { return all.servers(p.Server) != s.Servers })
}

// named returns a source for each server that counts, with its name.
func (all sources) named() (each []namedServer) {
	for _, s := range all {
		for _, name := range s.Servers.Names() {
			if all.servers(name) == s.Servers {
				each = append(each, namedServer{s.Servers, name})
			}
		}
	}
	return each
}

// namedServer is a server under its name.
type namedServer struct {
	part *Part
	name string
}

// prompts implements the query that lists prompts as slash commands.
func (i *instance) prompts(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
	r := protocol.CommandListResult{Data: []protocol.CommandInfo{}}
	all := i.now()
	for _, s := range all {
		for _, p := range all.promptsOf(s) {
			r.Data = append(r.Data, protocol.CommandInfo{
				Name: p.Command, Kind: protocol.CommandPrompt, Description: p.Description, Hint: mcpinput.Hint(p.Arguments), Plugin: s.Plugin,
				Server: p.Server, Prompt: p.Name, Arguments: p.Arguments,
			})
		}
	}
	return json.Marshal(r)
}

// resources implements the query that lists resources, by server. It asks all servers side by side, so a slow one does not delay the
// others. A server that fails, or does not answer in its time, is named with its error.
func (i *instance) resources(ctx context.Context, call *plugin.OperationCall) (json.RawMessage, error) {
	view, err := call.Host.State.View(ctx, "")
	if err != nil {
		return nil, err
	}
	r := protocol.MCPResourcesResult{Data: []protocol.ResourceInfo{}, Failed: []protocol.ServerFailure{}}
	for _, a := range listEach(ctx, i.now().named(), i.at(view)) {
		r.Data = append(r.Data, a.data...)
		if a.err != nil {
			r.Failed = append(r.Failed, protocol.ServerFailure{Server: a.server, Reason: reason(a.err).Error()})
		}
	}
	return json.Marshal(r)
}

// listing is what a server answered to the question for its resources.
type listing struct {
	server string
	data   []protocol.ResourceInfo
	err    error
}

// listEach asks servers for their resources, mostAsked at a time, and returns the answers in the order of the servers. Each server has an
// equal part of askTime, so that all together take no longer.
func listEach(ctx context.Context, servers []namedServer, at Session) []listing {
	rounds := (len(servers) + mostAsked - 1) / mostAsked
	all := make([]listing, len(servers))
	var asking errgroup.Group
	asking.SetLimit(mostAsked)
	for n, s := range servers {
		asking.Go(func() error {
			ctx, cancel := context.WithTimeoutCause(ctx, askTime/time.Duration(rounds), child.ErrLate)
			defer cancel()
			data, err := s.part.Resources(ctx, at, s.name)
			all[n] = listing{s.name, data, err}
			return nil
		})
	}
	_ = asking.Wait() // each answer has its own error
	return all
}

// complete implements the query that completes an argument.
func (i *instance) complete(ctx context.Context, call *plugin.OperationCall) (json.RawMessage, error) {
	var p protocol.MCPCompleteParams
	if err := json.Unmarshal(call.Args, &p); err != nil {
		return nil, err
	}
	servers := i.now().servers(p.Server)
	if servers == nil {
		return nil, noServer(p.Server)
	}
	view, err := call.Host.State.View(ctx, "")
	if err != nil {
		return nil, err
	}
	r, err := servers.Complete(ctx, i.at(view), &p)
	if err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// beforeTurn adds what the input names. If a server fails, the turn ends before the model is asked.
func (i *instance) beforeTurn(ctx context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
	given := tc.Inputs[protocol.ServersID]
	if len(given) == 0 {
		return nil, nil
	}
	var input protocol.ServersInput
	if err := json.Unmarshal(given, &input); err != nil {
		return nil, err
	}
	var all []plugin.Message
	size := 0
	if input.Prompt != nil {
		m, err := i.prompt(ctx, tc.View, input.Prompt)
		if err != nil {
			return []plugin.Directive{plugin.Abort("prompt_unavailable", err.Error())}, nil
		}
		all, size = append(all, m), sizeOf(m)
	}
	for _, r := range input.Resources {
		m, err := i.resource(ctx, tc.View, r)
		if size += sizeOf(m); err == nil && size > maxContents {
			err = fmt.Errorf("read @%s:%s: with it, what the input names has %d bytes, more than %d; name less in one input", r.Server, r.URI, size, maxContents)
		}
		if err != nil {
			return []plugin.Directive{plugin.Abort("resource_unavailable", err.Error())}, nil
		}
		all = append(all, m)
	}
	return []plugin.Directive{plugin.Enqueue(all...)}, nil
}

// prompt returns the message of a prompt.
func (i *instance) prompt(ctx context.Context, v *plugin.View, call *protocol.CommandCall) (plugin.Message, error) {
	all := i.now()
	for _, s := range all {
		list := all.promptsOf(s)
		n := slices.IndexFunc(list, func(p Prompt) bool { return p.Command == call.Name })
		if n < 0 {
			continue
		}
		p := list[n]
		arguments, err := mcpinput.Assign(p.Arguments, call.Arguments)
		if err != nil {
			return plugin.Message{}, fmt.Errorf("run /%s: %w", call.Name, err)
		}
		text, files, err := s.Servers.Prompt(ctx, i.at(v), p.Server, p.Name, arguments)
		if err != nil {
			return plugin.Message{}, fmt.Errorf("get the prompt %s of the MCP server %s: %w", p.Name, p.Server, reason(err))
		}
		return message(fmt.Sprintf("[The text of the prompt /%s of the MCP server %s]\n", call.Name, p.Server), text, files), nil
	}
	return plugin.Message{}, fmt.Errorf("run /%s: the session has no such command now; if it is a prompt of a server that a client added, connect that client again", call.Name)
}

// resource returns the message of a resource.
func (i *instance) resource(ctx context.Context, v *plugin.View, r protocol.ResourceMention) (plugin.Message, error) {
	servers := i.now().servers(r.Server)
	if servers == nil {
		return plugin.Message{}, fmt.Errorf("read @%s:%s: the session has no MCP server %[1]s now; if a client added it, connect that client again", r.Server, r.URI)
	}
	text, files, err := servers.Resource(ctx, i.at(v), r.Server, r.URI)
	if err != nil {
		return plugin.Message{}, fmt.Errorf("read @%s:%s: %w", r.Server, r.URI, reason(err))
	}
	return message(fmt.Sprintf("[The resource %s of the MCP server %s]\n", r.URI, r.Server), text, files), nil
}

// reason returns why a server failed, for people: without the code and the plugin's name, which the sentence around it has or does not need,
// and without the method that the library puts before the server's words.
func reason(err error) error {
	err = child.Cause(err)
	if method, why, ok := strings.Cut(err.Error(), `": `); ok && strings.HasPrefix(method, `calling "`) {
		return errors.New(why)
	}
	return err
}

// sizeOf returns the bytes of a message.
func sizeOf(m plugin.Message) int {
	size := len(m.Content)
	for _, p := range m.Parts {
		size += len(p.Attachment.Data)
	}
	return size
}

// message returns a message for the model, which begins with its source.
func message(source, text string, files []protocol.Attachment) plugin.Message {
	m := plugin.Message{Role: protocol.RoleUser, Content: source + text}
	for _, f := range files {
		m.Parts = append(m.Parts, protocol.Part{Kind: protocol.PartAttachment, Attachment: &f})
	}
	return m
}
