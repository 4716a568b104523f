package mcp

import (
	"context"
	"encoding/json"
	"time"

	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// authorizeTool is the name of the tool that lashd offers while a server requires a login. It
// disappears after the login, when the server's own tools appear.
const authorizeTool = "authorize"

// authorization returns the tool with which a user logs in to a server.
func authorization(server string) tool.Tool {
	return tool.Tool{
		Manifest: protocol.ToolManifest{
			Name: toolName(server, authorizeTool), Kind: protocol.ToolKindOther,
			Description: "Asks the user to log in to the MCP server " + server + ". The server's own tools become available after the login.",
		},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe, Input: json.RawMessage(`{"type":"object"}`)},
	}
}

// authorize asks a user to log in and then connects the server. It runs as a call of the authorize
// tool, under the time limit for calls, which stops while the user is asked.
func (s *server) authorize(ctx context.Context, call *tool.Invocation) (tool.Result, error) {
	c := &inflight{Invocation: call, limit: s.end.Call}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.clock = time.AfterFunc(c.limit, func() { cancel(child.ErrLate) })
	defer c.clock.Stop()
	err := s.logIn(context.WithValue(ctx, inflightKey{}, c))
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		failed := &child.Error{Plugin: s.end.label, Code: child.Failed, Err: s.clean(err)}
		return tool.Result{Output: child.Failure(failed, protocol.ReplaySafe)}, nil
	}
	return tool.Result{Output: protocol.Succeed("Logged in. The server's tools are available from the next turn.")}, nil
}

// maxLogins is how often one call asks the user. A server may require more rights for its list of
// tools than for the handshake.
const maxLogins = 3

// logIn repeats the login until the server connects or fails for another reason. After success, the
// users fetch the tools again.
func (s *server) logIn(ctx context.Context) (err error) {
	for range maxLogins {
		if err = s.login.run(ctx); err != nil {
			return err
		}
		s.super.Resume()
		if _, err = s.ready(context.WithValue(ctx, inflightKey{}, nil)); err == nil {
			s.tell(context.WithoutCancel(ctx))
			return nil
		}
		if s.login.needed() == nil {
			return err
		}
	}
	return err
}
