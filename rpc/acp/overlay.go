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

// additions are the MCP servers and tools that an editor adds to a session while
// it is connected.
type additions struct {
	servers protocol.MCPServers
	tools   []protocol.ClientTool
}

func (b additions) empty() bool { return len(b.servers)+len(b.tools) == 0 }

// additionsFrom returns the additions for a session from the params of a request
// and from the editor's capabilities. Errors point into the params.
func (a *agent) additionsFrom(list []sdk.McpServer, directories []string) (additions, error) {
	if len(directories) > 0 {
		return additions{}, invalidParams("/additionalDirectories", "is not supported; see sessionCapabilities")
	}
	servers := protocol.MCPServers{}
	for i := range list {
		name, server, err := serverOf(&list[i], fmt.Sprintf("/mcpServers/%d", i))
		if err != nil {
			return additions{}, err
		}
		if _, taken := servers[name]; taken {
			return additions{}, invalidParams(fmt.Sprintf("/mcpServers/%d/name", i), fmt.Sprintf("%q is used twice", name))
		}
		servers[name] = server
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return additions{servers, toolsFor(a.offers)}, nil
}

// serverOf converts an MCP server from the protocol's form to lashd's, and returns
// its name as well. pointer is the JSON pointer of m, for errors.
func serverOf(m *sdk.McpServer, pointer string) (string, protocol.MCPServer, error) {
	switch {
	case m.Stdio != nil && m.Stdio.Name == "", m.Http != nil && m.Http.Name == "":
		return "", protocol.MCPServer{}, invalidParams(pointer+"/name", "is required")
	case m.Stdio != nil && m.Stdio.Command == "", m.Http != nil && m.Http.Url == "":
		return "", protocol.MCPServer{}, invalidParams(pointer, "must have a command or a url")
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
	return "", protocol.MCPServer{}, invalidParams(pointer, "has an unsupported transport; see mcpCapabilities")
}

// serverName replaces all characters that tool names cannot contain, because the
// server's name becomes part of its tools' names.
func serverName(name string) string {
	clean := func(c rune) rune {
		if c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}
	return strings.Map(clean, name)
}

// caller calls a method of the daemon. It is link.Call, which is bound to one
// connection, or daemon.call, which survives a lost one.
type caller func(ctx context.Context, method string, params, result any) error

// overlay manages the editor's additions to one session. The daemon removes them
// when the connection ends, so they are applied again on each new connection.
type overlay struct {
	ref
	additions
	kinds *toolKinds

	// changing is held while tools are replaced because the sandbox changed.
	changing sync.Mutex

	mu       sync.Mutex
	leaving  bool // leave was called; restore nothing
	applied  bool // the daemon has had an overlay of this editor
	confined bool // commands of the session belong in a sandbox
	behind   bool // the last change of the tools did not reach the daemon
}

// confine records whether the commands of a session with this configuration belong
// in a sandbox, and reports whether the daemon needs other tools for that.
func (o *overlay) confine(c protocol.Config) (changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.confined
	o.confined = c.Approval.Sandbox.Confines()
	return o.confined != before || o.behind
}

// current returns the tools that the editor provides now. A terminal of the editor
// is in no sandbox, so commands run in lashd's own tool where they belong in one.
func (o *overlay) current() []protocol.ClientTool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.confined {
		return o.tools
	}
	return slices.DeleteFunc(slices.Clone(o.tools), func(t protocol.ClientTool) bool { return t.Kind == protocol.ToolKindExecute })
}

// follow replaces the editor's tools if a new configuration changes which they are,
// or if the last change failed. It returns once the daemon has them, also if another
// goroutine sends them.
func (o *overlay) follow(ctx context.Context, call caller, c protocol.Config) {
	o.changing.Lock()
	defer o.changing.Unlock()
	if !o.confine(c) {
		return
	}
	if err := o.apply(ctx, call); err != nil {
		o.Log.Warn("could not change the editor's tools", "session", o.id, "error", err)
	}
}

// apply sets the session's overlay to the editor's additions. A session has one
// overlay, so this replaces one of another client.
func (o *overlay) apply(ctx context.Context, call caller) error {
	tools := o.current()
	o.mu.Lock()
	needless := len(tools)+len(o.servers) == 0 && !o.applied
	o.applied = !needless
	o.mu.Unlock()
	if needless {
		return nil
	}
	p := protocol.SessionOverlayParams{Mutation: newMutation(), SessionID: o.id, Tools: tools, MCPServers: o.servers, WhileConnected: true}
	err := call(ctx, "session/setOverlay", p, nil)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.behind = err != nil
	return err
}

// leaveLimit bounds how long an editor's disconnect waits until the daemon has
// removed its overlay.
const leaveLimit = 3 * time.Second

// leave removes the editor's additions from the session, which continues without
// them. It may be called from any goroutine and waits at most leaveLimit.
func (o *overlay) leave() {
	if o.empty() {
		return
	}
	o.mu.Lock()
	o.leaving = true
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.ctx), leaveLimit)
	defer cancel()
	p := protocol.SessionOverlayParams{Mutation: newMutation(), SessionID: o.id}
	if err := o.daemon.call(ctx, "session/setOverlay", p, nil); err != nil {
		o.Log.Warn("could not remove the editor's overlay from a session", "session", o.id, "error", err)
	}
}

// toolKinds caches the kind of each tool in a session, such as read or execute,
// which decides the icon of a call. refreshNow updates it.
type toolKinds struct {
	mu     sync.Mutex
	byName map[string]protocol.ToolKind
}

// of returns the kind of a tool; ToolKindOther if the tool is unknown.
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

// refresh lists the session's tools on another goroutine, so that the session's
// goroutine does not wait for the daemon.
func (o *overlay) refresh(call caller) {
	o.work.Go(func() { o.refreshNow(o.ctx, call) })
}

// refreshNow lists the session's tools, updates their kinds, and applies the
// editor's overlay again if it is missing. Failures are logged at debug level:
// kinds are a matter of display.
func (o *overlay) refreshNow(ctx context.Context, call caller) {
	var list protocol.ToolListResult
	if err := call(ctx, "tool/list", protocol.SessionParams{SessionID: o.id}, &list); err != nil {
		o.Log.Debug("could not list the tools of a session", "session", o.id, "error", err)
		return
	}
	o.kinds.set(list.Data)
	o.comeBack(ctx, call, list.Data)
}

// comeBack applies the editor's overlay again after another client, which had
// replaced it, is gone. tools are the session's current ones: a tool whose source
// is a client means that an overlay is in place.
func (o *overlay) comeBack(ctx context.Context, call caller, tools []protocol.ToolRecord) {
	o.mu.Lock()
	leaving := o.leaving
	o.mu.Unlock()
	others := slices.ContainsFunc(tools, func(t protocol.ToolRecord) bool { return strings.HasPrefix(t.Source, "client:") })
	if leaving || others || len(o.current()) == 0 {
		return
	}
	if err := o.apply(ctx, call); err != nil {
		o.Log.Warn("could not restore the editor's tools", "session", o.id, "error", err)
	}
}
