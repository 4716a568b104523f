package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// maxName is how long the name of a tool may be.
const maxName = 64

// binding is what a tool of the plugin stands for.
type binding struct {
	server *member
	name   string // as the server calls it
	tool   tool.Tool
	login  bool // it is not the server's own: a person logs in with it
}

// Prefix is how the names of a server's tools begin.
func Prefix(server string) string { return "mcp__" + plain(server) + "__" }

// toolName is what the model calls a tool of a server.
func toolName(server, name string) string {
	full := Prefix(server) + plain(name)
	if len(full) <= maxName {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	return full[:maxName-9] + "_" + hex.EncodeToString(sum[:4])
}

// plain has an underscore for whatever cannot be in the name of a tool.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// compose makes the tools of the plugin of what its servers list, in order of servers and tools. Of two that would have one
// name, the second is left out.
func (p *Part) compose() {
	p.composing.Lock()
	defer p.composing.Unlock()
	bindings, order := map[string]*binding{}, []tool.Tool{}
	for _, m := range p.members {
		if m.server.login.needed() != nil {
			b := &binding{server: m, name: authorizeTool, tool: authorization(m.name), login: true}
			bindings[b.tool.Manifest.Name], order = b, append(order, b.tool)
		}
		list := m.listed()
		if list == nil {
			continue
		}
		for _, x := range list.Tools {
			b := &binding{server: m, name: x.Name, tool: x.tool(toolName(m.name, x.Name))}
			name := b.tool.Manifest.Name
			if other := bindings[name]; other != nil {
				p.config.Output.Add(slog.LevelWarn, fmt.Sprintf("mcp server %s: the tool %.80q is left out: %s is %.80q of %s already", m.name, x.Name, name, other.name, other.server.name))
				continue
			}
			bindings[name], order = b, append(order, b.tool)
		}
	}
	p.offer.Store(&offer{bindings, order})
}

// offer is what a plugin has at one time. It does not change.
type offer struct {
	bindings map[string]*binding // by the name that the model knows
	tools    []tool.Tool
}

func (x *Listed) tool(name string) tool.Tool {
	t := tool.Tool{
		Manifest: protocol.ToolManifest{Name: name, Description: x.Description, Kind: protocol.ToolKindOther},
		Contract: protocol.ToolContract{Replay: protocol.ReplayNever, Input: x.Input},
	}
	if x.ReadOnly {
		t.Manifest.Kind = protocol.ToolKindRead
	}
	switch {
	case x.ReadOnly:
		t.Contract.Replay = protocol.ReplaySafe
	case x.Idempotent:
		t.Contract.Replay = protocol.ReplayIdempotent
	}
	return t
}
