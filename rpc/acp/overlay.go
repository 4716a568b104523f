package acp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// brought is what the editor adds to a session: as long as it is there.
type brought struct {
	servers protocol.MCPServers
	tools   []protocol.ClientTool
}

func (b brought) nothing() bool { return len(b.servers)+len(b.tools) == 0 }

// broughtBy is what the editor's params and capabilities come to.
func (a *agent) broughtBy(list []sdk.McpServer, directories []string) (brought, error) {
	if len(directories) > 0 {
		return brought{}, bad("/additionalDirectories", "is not supported; see sessionCapabilities")
	}
	servers := protocol.MCPServers{}
	for i := range list {
		name, server, err := serverOf(&list[i], fmt.Sprintf("/mcpServers/%d", i))
		if err != nil {
			return brought{}, err
		}
		if _, taken := servers[name]; taken {
			return brought{}, bad(fmt.Sprintf("/mcpServers/%d/name", i), fmt.Sprintf("%q is used twice", name))
		}
		servers[name] = server
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return brought{servers, toolsFor(a.offers)}, nil
}

func serverOf(m *sdk.McpServer, pointer string) (string, protocol.MCPServer, error) {
	switch {
	case m.Stdio != nil && m.Stdio.Name == "", m.Http != nil && m.Http.Name == "":
		return "", protocol.MCPServer{}, bad(pointer+"/name", "is required")
	case m.Stdio != nil && m.Stdio.Command == "", m.Http != nil && m.Http.Url == "":
		return "", protocol.MCPServer{}, bad(pointer, "must have a command or a url")
	case m.Stdio != nil:
		s := protocol.MCPServer{Command: m.Stdio.Command, Args: m.Stdio.Args, Env: map[string]string{}}
		for _, e := range m.Stdio.Env {
			s.Env[e.Name] = e.Value
		}
		return serverName(m.Stdio.Name), s, nil
	case m.Http != nil:
		s := protocol.MCPServer{URL: m.Http.Url, Headers: map[string]string{}}
		for _, h := range m.Http.Headers {
			s.Headers[h.Name] = h.Value
		}
		return serverName(m.Http.Name), s, nil
	}
	return "", protocol.MCPServer{}, bad(pointer, "has an unsupported transport; see mcpCapabilities")
}

// serverName is a name as it may stand in those of tools.
func serverName(name string) string {
	clean := func(c rune) rune {
		if c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}
	return strings.Map(clean, name)
}

// caller calls a method of the daemon: on one connection, or whatever becomes of it.
type caller func(ctx context.Context, method string, params, result any) error

// overlay is what the editor adds to a session while it is there.
type overlay struct {
	ref
	brought
	kinds *toolKinds

	mu      sync.Mutex
	leaving bool // it is being taken out, and does not come back
}

// bring gives a session what the editor adds to it, in place of what an editor has added before.
func (o *overlay) bring(ctx context.Context, call caller) error {
	if o.nothing() {
		return nil
	}
	p := protocol.SessionOverlayParams{Mutation: once(), SessionID: o.id, Tools: o.tools, MCPServers: o.servers, WhileConnected: true}
	return call(ctx, "session/setOverlay", p, nil)
}

// leavePatience is how long an editor that goes waits for its tools to be taken out.
const leavePatience = 3 * time.Second

// leave takes what the editor has added out of the session, which goes on with what it has itself.
func (o *overlay) leave() {
	if o.nothing() {
		return
	}
	o.mu.Lock()
	o.leaving = true
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.ctx), leavePatience)
	defer cancel()
	p := protocol.SessionOverlayParams{Mutation: once(), SessionID: o.id}
	if err := o.daemon.call(ctx, "session/setOverlay", p, nil); err != nil {
		o.Log.Warn("could not remove the editor's overlay from a session", "session", o.id, "error", err)
	}
}

// toolKinds are the kinds of a session's tools, as they were when it was last looked.
type toolKinds struct {
	mu     sync.Mutex
	byName map[string]protocol.ToolKind
}

func (k *toolKinds) of(tool string) protocol.ToolKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(k.byName[tool], protocol.ToolKindOther)
}

func (k *toolKinds) set(tools []protocol.ToolRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byName = map[string]protocol.ToolKind{}
	for _, t := range tools {
		k.byName[t.Name] = t.Kind
	}
}

// refresh looks at the session's tools, beside what else goes on.
func (o *overlay) refresh(call caller) {
	o.work.Go(func() { o.refreshNow(o.ctx, call) })
}

func (o *overlay) refreshNow(ctx context.Context, call caller) {
	var list protocol.ToolListResult
	if err := call(ctx, "tool/list", protocol.SessionParams{SessionID: o.id}, &list); err != nil {
		o.Log.Debug("could not list the tools of a session", "session", o.id, "error", err)
		return
	}
	o.kinds.set(list.Data)
	o.comeBack(ctx, call, list.Data)
}

// comeBack brings the editor's tools again once another client is gone that had put its own in their place.
func (o *overlay) comeBack(ctx context.Context, call caller, tools []protocol.ToolRecord) {
	o.mu.Lock()
	leaving := o.leaving
	o.mu.Unlock()
	others := slices.ContainsFunc(tools, func(t protocol.ToolRecord) bool { return strings.HasPrefix(t.Source, "client:") })
	if leaving || others || len(o.tools) == 0 {
		return
	}
	if err := o.bring(ctx, call); err != nil {
		o.Log.Warn("could not restore the editor's tools", "session", o.id, "error", err)
	}
}
