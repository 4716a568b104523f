package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/tool"
)

// List is what a server has said of itself. It may be kept, as JSON, for as long as the digest of the plugin is the same.
type List struct {
	Server  string   `json:"server,omitempty"`  // its name
	Version string   `json:"version,omitempty"` // its version
	Tools   []Listed `json:"tools"`             // in order of name
}

// Listed is a tool as a server describes it.
type Listed struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input,omitempty"`
	ReadOnly    bool            `json:"readOnly,omitempty"`   // it changes nothing
	Idempotent  bool            `json:"idempotent,omitempty"` // once more changes nothing more
}

const (
	maxTools       = 512      // of a server
	maxDescription = 16 << 10 // bytes
	maxSchema      = 64 << 10 // bytes
	maxPages       = 64       // of a list
)

// listTools asks a server for its tools. What cannot be used is told to warn, and left out.
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
	return nil, fmt.Errorf("lists its tools in more than %d pages", maxPages)
}

func (l *List) add(t *sdk.Tool, warn func(string)) {
	schema, err := schemaOf(t.InputSchema)
	switch {
	case err != nil:
		warn(fmt.Sprintf("the tool %.80q is left out: its schema: %v", t.Name, err))
	case t.Name == "":
		warn("a tool without a name is left out")
	case slices.ContainsFunc(l.Tools, func(x Listed) bool { return x.Name == t.Name }):
		warn(fmt.Sprintf("the tool %.80q is listed twice: the second is left out", t.Name))
	case len(l.Tools) == maxTools:
		warn(fmt.Sprintf("the tool %.80q is left out: there are %d already", t.Name, maxTools))
	default:
		l.Tools = append(l.Tools, listed(t, schema))
	}
}

func listed(t *sdk.Tool, schema json.RawMessage) Listed {
	x := Listed{Name: t.Name, Description: cut(t.Description, maxDescription), Input: schema}
	if a := t.Annotations; a != nil {
		x.ReadOnly, x.Idempotent = a.ReadOnlyHint, a.IdempotentHint
	}
	return x
}

// schemaOf is a schema as it can be checked here.
func schemaOf(wire any) (json.RawMessage, error) {
	if wire == nil {
		return nil, nil
	}
	raw, err := json.Marshal(wire)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("has more than %d bytes", maxSchema)
	}
	return raw, tool.CheckSchema(raw)
}

// same tells whether two lists say the same.
func (l *List) same(o *List) bool {
	if l == nil || o == nil || len(l.Tools) != len(o.Tools) {
		return l == o
	}
	return slices.EqualFunc(l.Tools, o.Tools, func(a, b Listed) bool {
		same := bytes.Equal(a.Input, b.Input)
		a.Input, b.Input = nil, nil
		return same && a.Name == b.Name && a.Description == b.Description && a.ReadOnly == b.ReadOnly && a.Idempotent == b.Idempotent
	})
}

// cut is the beginning of a text, and valid.
func cut(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit-3] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

var quiet = slog.New(slog.DiscardHandler)
