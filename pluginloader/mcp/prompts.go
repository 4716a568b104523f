package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/attachment"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// Limits of what people get from servers.
const (
	maxPrompts   = 256             // per server
	maxPrompt    = 128             // bytes of the name of a prompt or an argument
	maxArguments = 32              // of a prompt
	maxResources = 500             // listed per server
	maxContents  = 4 << 20         // bytes of a prompt or a resource
	askTime      = 9 * time.Second // for a prompt, a resource or a list; a hook may take ten seconds
	mostAsked    = 16              // servers that are asked for their resources at once
	maxValues    = 100             // of a completion
	maxTitle     = 1 << 10         // bytes of titles and descriptions
	maxURI       = 4 << 10         // bytes
	maxType      = 256             // bytes of a media type
)

// ListedPrompt is a prompt as the server describes it.
type ListedPrompt struct {
	Name        string                     `json:"name"`
	Description string                     `json:"description,omitempty"`
	Arguments   []protocol.CommandArgument `json:"arguments,omitempty"`
}

// Prompt is a prompt of a server, under the name that people type.
type Prompt struct {
	ListedPrompt
	Server  string
	Command string
}

// Session is the session for which a person uses a server. The server runs in its sandbox.
type Session struct {
	ID      protocol.SessionID
	Cwd     string
	Sandbox protocol.SandboxMode
}

// listPrompts adds the prompts of a server to its list. A failure leaves it without prompts.
func listPrompts(ctx context.Context, session *sdk.ClientSession, l *List, warn func(string)) {
	if about := session.InitializeResult(); about == nil || about.Capabilities == nil || about.Capabilities.Prompts == nil {
		return
	}
	params := &sdk.ListPromptsParams{}
	for range maxPages {
		page, err := session.ListPrompts(ctx, params)
		if err != nil {
			warn("its prompts are not available: " + cut(err.Error(), maxMessage))
			return
		}
		for _, p := range page.Prompts {
			l.addPrompt(p, warn)
		}
		if params = (&sdk.ListPromptsParams{Cursor: page.NextCursor}); page.NextCursor == "" {
			return
		}
	}
}

// addPrompt appends a prompt that has a name of its own.
func (l *List) addPrompt(p *sdk.Prompt, warn func(string)) {
	taken := slices.ContainsFunc(l.Prompts, func(x ListedPrompt) bool { return x.Name == p.Name })
	long := len(p.Name) > maxPrompt || slices.ContainsFunc(p.Arguments, func(a *sdk.PromptArgument) bool { return len(a.Name) > maxPrompt })
	if p.Name == "" || taken || long || len(l.Prompts) == maxPrompts || len(p.Arguments) > maxArguments {
		warn(fmt.Sprintf("skipped the prompt %.80q: its name is empty or taken, a name has more than %d bytes, or there are too many prompts or arguments", p.Name, maxPrompt))
		return
	}
	x := ListedPrompt{Name: p.Name, Description: cut(p.Description, maxTitle)}
	if x.Description == "" {
		x.Description = cut(p.Title, maxTitle)
	}
	for _, a := range p.Arguments {
		x.Arguments = append(x.Arguments, protocol.CommandArgument{Name: a.Name, Description: cut(a.Description, maxTitle), Required: a.Required})
	}
	l.Prompts = append(l.Prompts, x)
}

// Prompts returns the prompts of all servers. It starts nothing.
func (p *Part) Prompts() (all []Prompt) {
	for _, m := range p.members {
		if list := m.listed(); list != nil {
			for _, x := range list.Prompts {
				all = append(all, Prompt{x, m.name, toolName(m.name, x.Name)})
			}
		}
	}
	return all
}

// Has reports whether the plugin has a server whose tools and prompts have the same names as those of a server called name.
// A nil Part has none.
func (p *Part) Has(name string) bool {
	return p != nil && slices.ContainsFunc(p.members, func(m *member) bool { return Prefix(m.name) == Prefix(name) })
}

// Names returns the names of the servers, sorted. A nil Part has none.
func (p *Part) Names() (all []string) {
	if p == nil {
		return nil
	}
	for _, m := range p.members {
		all = append(all, m.name)
	}
	return all
}

// denied returns the hosts that rules of a session deny. They stay closed, whatever the settings of a server say.
func (p *Part) denied(ctx context.Context, id protocol.SessionID) (*protocol.NetworkAccess, error) {
	if p.pool.config.Denied == nil {
		return nil, nil
	}
	hosts, err := p.pool.config.Denied(ctx, id)
	return &protocol.NetworkAccess{Denied: hosts}, err
}

// asking runs f with a connection to the server that works for a session.
func asking[T any](ctx context.Context, p *Part, at Session, server string, f func(context.Context, *sdk.ClientSession) (T, error)) (result T, err error) {
	m := p.member(server)
	if m == nil {
		return result, noServer(server)
	}
	denied, err := p.denied(ctx, at.ID)
	if err != nil {
		return result, err
	}
	s, left, err := p.serverFor(m, &tool.Invocation{SessionID: at.ID, Cwd: at.Cwd, Sandbox: at.Sandbox, Network: denied})
	if err != nil {
		return result, err
	}
	defer left()
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, child.ErrLate)
	defer cancel()
	l, err := s.super.Use(ctx)
	if err != nil {
		return result, err
	}
	ctx, leave := l.bound(ctx)
	defer leave()
	result, err = f(ctx, l.joined())
	if err != nil {
		err = l.failed(because(ctx, err))
	}
	return result, err
}

// Prompt returns the text of a prompt with arguments, and its attachments.
func (p *Part) Prompt(ctx context.Context, at Session, server, name string, arguments map[string]string) (string, []protocol.Attachment, error) {
	got, err := asking(ctx, p, at, server, func(ctx context.Context, s *sdk.ClientSession) (*sdk.GetPromptResult, error) {
		return s.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: arguments})
	})
	if err != nil {
		return "", nil, err
	}
	c := &contents{}
	dialog := slices.ContainsFunc(got.Messages, func(m *sdk.PromptMessage) bool { return m.Role == "assistant" })
	for _, m := range got.Messages {
		if dialog {
			c.text = append(c.text, string(m.Role)+":")
		}
		c.add(m.Content)
	}
	return c.result()
}

// Resource reads a resource of a server.
func (p *Part) Resource(ctx context.Context, at Session, server, uri string) (string, []protocol.Attachment, error) {
	got, err := asking(ctx, p, at, server, func(ctx context.Context, s *sdk.ClientSession) (*sdk.ReadResourceResult, error) {
		return s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	})
	if err != nil {
		return "", nil, err
	}
	c := &contents{}
	for _, r := range got.Contents {
		c.resource(r, len(got.Contents) > 1)
	}
	return c.result()
}

// contents collects what a person gets from a server for the model.
type contents struct {
	text  []string
	files []protocol.Attachment
	size  int
	err   error
}

// add adds one piece of a prompt.
func (c *contents) add(x sdk.Content) {
	switch x := x.(type) {
	case *sdk.TextContent:
		c.say(x.Text)
	case *sdk.ImageContent:
		c.attach("image", x.Data)
	case *sdk.EmbeddedResource:
		c.resource(x.Resource, true)
	case *sdk.ResourceLink:
		c.say("[resource " + x.URI + "]")
	default:
		c.err = errors.New("it has audio, or content of an unknown type")
	}
}

// resource adds a resource, with its address if named.
func (c *contents) resource(r *sdk.ResourceContents, named bool) {
	switch {
	case r == nil:
	case r.Blob != nil:
		c.attach(r.URI, r.Blob)
	case named:
		c.say("[resource " + r.URI + "]\n" + r.Text)
	default:
		c.say(r.Text)
	}
}

func (c *contents) say(text string) {
	c.size += len(text)
	c.text = append(c.text, strings.ToValidUTF8(text, "\uFFFD"))
}

// attach adds an image or a PDF document.
func (c *contents) attach(name string, data []byte) {
	c.size += len(data)
	kind := attachment.Type(data)
	if kind == "" || kind == "text/plain" {
		c.err = fmt.Errorf("%s is neither text nor an image nor a PDF document", cut(name, 200))
		return
	}
	c.files = append(c.files, protocol.Attachment{Name: cut(name, 200), Type: kind, Data: data})
}

// result returns the text and the files, or why the model cannot get them.
func (c *contents) result() (string, []protocol.Attachment, error) {
	if c.size > maxContents {
		return "", nil, fmt.Errorf("it has %d bytes, more than %d", c.size, maxContents)
	}
	return strings.Join(c.text, "\n"), c.files, c.err
}

// Resources lists the resources and templates of a server. A server without resources has none.
func (p *Part) Resources(ctx context.Context, at Session, server string) ([]protocol.ResourceInfo, error) {
	return asking(ctx, p, at, server, func(ctx context.Context, s *sdk.ClientSession) (all []protocol.ResourceInfo, err error) {
		if about := s.InitializeResult(); about == nil || about.Capabilities == nil || about.Capabilities.Resources == nil {
			return nil, nil
		}
		for r, err := range s.Resources(ctx, nil) {
			if err != nil {
				return all, err
			}
			if len(all) == maxResources {
				break
			}
			if r.URI == "" || len(r.URI) > maxURI { // an input could not name it
				continue
			}
			all = append(all, protocol.ResourceInfo{Server: server, URI: r.URI, Name: cut(r.Name, maxTitle), Title: cut(r.Title, maxTitle), Description: cut(r.Description, maxTitle), Type: cut(r.MIMEType, maxType), Size: r.Size})
		}
		for r, err := range s.ResourceTemplates(ctx, nil) {
			if _, said := errors.AsType[*jsonrpc.Error](err); err != nil && !said {
				return all, err
			}
			if err != nil || len(all) == maxResources {
				return all, nil // servers without templates may not know the method
			}
			if r.URITemplate == "" || len(r.URITemplate) > maxURI {
				continue
			}
			all = append(all, protocol.ResourceInfo{Server: server, URI: r.URITemplate, Name: cut(r.Name, maxTitle), Title: cut(r.Title, maxTitle), Description: cut(r.Description, maxTitle), Type: cut(r.MIMEType, maxType), Template: true})
		}
		return all, nil
	})
}

// Complete returns values for an argument of a prompt or of a resource template. A server without completion has none.
func (p *Part) Complete(ctx context.Context, at Session, c *protocol.MCPCompleteParams) (*protocol.MCPCompleteResult, error) {
	ref := &sdk.CompleteReference{Type: "ref/resource", URI: c.Template}
	if c.Prompt != "" {
		ref = &sdk.CompleteReference{Type: "ref/prompt", Name: c.Prompt}
	}
	return asking(ctx, p, at, c.Server, func(ctx context.Context, s *sdk.ClientSession) (*protocol.MCPCompleteResult, error) {
		r := &protocol.MCPCompleteResult{Values: []string{}}
		if about := s.InitializeResult(); about == nil || about.Capabilities == nil || about.Capabilities.Completions == nil {
			return r, nil
		}
		got, err := s.Complete(ctx, &sdk.CompleteParams{
			Ref: ref, Argument: sdk.CompleteParamsArgument{Name: c.Argument, Value: c.Value}, Context: &sdk.CompleteContext{Arguments: c.Arguments},
		})
		if err != nil {
			return nil, err
		}
		r.Values = append(r.Values, got.Completion.Values[:min(len(got.Completion.Values), maxValues)]...)
		r.More = got.Completion.HasMore || len(got.Completion.Values) > maxValues
		return r, nil
	})
}
