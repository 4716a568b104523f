package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/tool"
)

// List describes a server and its tools. It can be stored as JSON and is valid as long as the
// plugin's digest stays the same.
type List struct {
	Server  string         `json:"server,omitempty"`  // the server's name for itself
	Version string         `json:"version,omitempty"` // the server's version
	Tools   []Listed       `json:"tools"`             // sorted by name
	Prompts []ListedPrompt `json:"prompts,omitempty"`
}

// Listed is a tool as the server describes it.
type Listed struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"` // name for people
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input,omitempty"`
	ReadOnly    bool            `json:"readOnly,omitempty"`   // the tool changes nothing
	Idempotent  bool            `json:"idempotent,omitempty"` // repeating a call changes nothing more
}

// Limits of a server's list.
const (
	maxTools       = 512      // per server
	maxDescription = 16 << 10 // bytes
	maxSchema      = 64 << 10 // bytes
	maxPages       = 64       // per list
)

// listAll asks a server for its tools and prompts.
func listAll(ctx context.Context, session *sdk.ClientSession, warn func(string)) (*List, error) {
	l, err := listTools(ctx, session, warn)
	if err == nil {
		listPrompts(ctx, session, l, warn)
	}
	return l, err
}

// listTools asks a server for its tools. It skips tools that lashd cannot use and reports them to
// warn.
func listTools(ctx context.Context, session *sdk.ClientSession, warn func(string)) (*List, error) {
	l := &List{Tools: []Listed{}}
	if about := session.InitializeResult(); about != nil {
		if info := about.ServerInfo; info != nil {
			l.Server, l.Version = cut(info.Name, 256), cut(info.Version, 64)
		}
		if about.Capabilities != nil && about.Capabilities.Tools == nil {
			return l, nil
		}
	}
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			l.add(t, warn)
		}
		if page.NextCursor == "" {
			slices.SortFunc(l.Tools, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
			return l, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, fmt.Errorf("listed its tools in more than %d pages", maxPages)
}

// add appends a tool, unless it has no name, a name that is taken, or a schema that lashd does not
// support.
func (l *List) add(t *sdk.Tool, warn func(string)) {
	schema, err := schemaOf(t.InputSchema)
	switch {
	case err != nil:
		warn(fmt.Sprintf("skipped the tool %.80q: invalid schema: %v", t.Name, err))
	case t.Name == "":
		warn("skipped a tool without a name")
	case slices.ContainsFunc(l.Tools, func(x Listed) bool { return x.Name == t.Name }):
		warn(fmt.Sprintf("skipped the second tool named %.80q", t.Name))
	case len(l.Tools) == maxTools:
		warn(fmt.Sprintf("skipped the tool %.80q: a server may have at most %d tools", t.Name, maxTools))
	default:
		l.Tools = append(l.Tools, listed(t, schema))
	}
}

// listed converts a tool and cuts a description that is too long.
func listed(t *sdk.Tool, schema json.RawMessage) Listed {
	x := Listed{Name: t.Name, Title: cut(t.Title, maxTitle), Description: cut(t.Description, maxDescription), Input: schema}
	if a := t.Annotations; a != nil {
		x.ReadOnly, x.Idempotent = a.ReadOnlyHint, a.IdempotentHint
		x.Title = cmp.Or(x.Title, cut(a.Title, maxTitle))
	}
	return x
}

// schemaOf returns a tool's schema as JSON if lashd supports it. No schema is nil: any arguments
// are allowed.
func schemaOf(wire any) (json.RawMessage, error) {
	if wire == nil {
		return nil, nil
	}
	raw, err := json.Marshal(wire)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("more than %d bytes", maxSchema)
	}
	return raw, tool.CheckSchema(raw)
}

// same reports whether two lists have equal tools and prompts.
func (l *List) same(o *List) bool {
	if l == nil || o == nil || len(l.Tools) != len(o.Tools) || !reflect.DeepEqual(l.Prompts, o.Prompts) {
		return l == o
	}
	return slices.EqualFunc(l.Tools, o.Tools, func(a, b Listed) bool {
		same := bytes.Equal(a.Input, b.Input)
		a.Input, b.Input = nil, nil
		return same && a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.ReadOnly == b.ReadOnly && a.Idempotent == b.Idempotent
	})
}

// cut returns at most limit bytes of a text, as valid UTF-8.
func cut(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit-3] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// quiet drops the library's log; lashd reports failures itself.
var quiet = slog.New(slog.DiscardHandler)
