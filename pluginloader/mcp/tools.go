package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// maxName is the maximum length of a tool's name.
const maxName = 64

// binding connects a tool's name in the session to a server's tool. Names for the model are
// adapted, so they can differ from the server's.
type binding struct {
	server *member
	name   string // the server's name of the tool
	tool   tool.Tool
	login  bool // the authorize tool of lashd
}

// Prefix returns the prefix of the names of a server's tools.
func Prefix(server string) string { return "mcp__" + plain(server) + "__" }

// toolName returns the name of a server's tool for the model. A name that is too long is cut and
// gets a hash, so that it stays unique.
func toolName(server, name string) string {
	full := Prefix(server) + plain(name)
	if len(full) <= maxName {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	return full[:maxName-9] + "_" + hex.EncodeToString(sum[:4])
}

// plain replaces characters that a tool's name cannot contain by underscores.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// compose computes the plugin's tools from the lists of its servers, sorted by server and tool. A
// server that waits for a login contributes the authorize tool. Of two tools with the same name,
// compose skips the second one and logs that.
func (p *Part) compose() {
	p.composing.Lock()
	defer p.composing.Unlock()
	bindings, order := map[string]*binding{}, []tool.Tool{}
	for _, m := range p.members {
		if m.server.login.needed() != nil {
			b := &binding{server: m, name: authorizeTool, tool: authorization(m.name), login: true}
			bindings[b.tool.Manifest.Name], order = b, append(order, b.tool)
		}
		for x := range m.tools() {
			b := &binding{server: m, name: x.Name, tool: x.tool(toolName(m.name, x.Name))}
			b.tool.Contract.Serial = m.end.Sampling.allowed() // only a serial call may make calls
			name := b.tool.Manifest.Name
			if other := bindings[name]; other != nil {
				p.config.Output.Add(slog.LevelWarn, fmt.Sprintf("mcp server %s: skipped the tool %.80q: the name %s belongs to %.80q of %s", m.name, x.Name, name, other.name, other.server.name))
				continue
			}
			bindings[name], order = b, append(order, b.tool)
		}
	}
	p.offer.Store(&offer{bindings, order})
}

// tools returns the tools of a member: those in the newest list, and those that other processes of the server have, too.
func (m *member) tools() iter.Seq[*Listed] {
	return func(yield func(*Listed) bool) {
		seen := map[string]bool{}
		for _, list := range m.lists() {
			fresh := slices.DeleteFunc(slices.Clone(list.Tools), func(x Listed) bool { return seen[x.Name] })
			for i := range fresh {
				if seen[fresh[i].Name] = true; !yield(&fresh[i]) {
					return
				}
			}
		}
	}
}

// offer is the plugin's tools at one time. It never changes.
type offer struct {
	bindings map[string]*binding // by the name for the model
	tools    []tool.Tool
}

// tool returns the tool for a session. Only the server's annotations make a call safe to repeat
// after a crash; without them it never is.
func (x *Listed) tool(name string) tool.Tool {
	t := tool.Tool{
		Manifest: protocol.ToolManifest{Name: name, Title: x.Title, Description: x.Description, Kind: protocol.ToolKindOther},
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
