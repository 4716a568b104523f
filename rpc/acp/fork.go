package acp

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// forkRequest replaces the SDK's type, whose MCP servers are those of the
// protocol's unstable part.
type forkRequest struct {
	SessionID             protocol.SessionID `json:"sessionId"`
	Cwd                   string             `json:"cwd"`
	McpServers            []sdk.McpServer    `json:"mcpServers"`
	AdditionalDirectories []string           `json:"additionalDirectories"`
}

// forkResult replaces the SDK's type, for the same reason.
type forkResult struct {
	SessionID     protocol.SessionID        `json:"sessionId"`
	Modes         *sdk.SessionModeState     `json:"modes,omitempty"`
	Models        *sdk.SessionModelState    `json:"models,omitempty"`
	ConfigOptions []sdk.SessionConfigOption `json:"configOptions,omitempty"`
}

// forkSession creates a session that shares the whole history of another one, in
// the same workspace, and opens it. It does not replay the history: the editor
// copies what it shows. If opening fails, the new session is deleted again.
func (a *agent) forkSession(ctx context.Context, r *request, p *forkRequest) (*forkResult, error) {
	r.admit()
	b, err := a.additionsFrom(p.McpServers, p.AdditionalDirectories)
	switch {
	case err != nil:
		return nil, err
	case p.SessionID == "":
		return nil, noSession()
	case p.Cwd == "":
		return nil, invalidParams("/cwd", "is required")
	}
	id, err := a.fork(ctx, p)
	if err != nil {
		return nil, err
	}
	s, is, st, err := a.take(ctx, id, p.Cwd, b, false)
	if err != nil {
		a.drop(ctx, id)
		return nil, err
	}
	s.begin(r, is)
	return &forkResult{id, st.modes, st.models, st.options}, nil
}

// fork checks that the workspace is the source's and creates the fork. It returns
// the id of the new session.
func (a *agent) fork(ctx context.Context, p *forkRequest) (protocol.SessionID, error) {
	var source protocol.SessionReadResult
	if err := a.daemon.call(ctx, "session/read", protocol.SessionReadParams{SessionID: p.SessionID, Limit: 1}, &source); err != nil {
		return "", err
	}
	if err := sameDirectory(source.Session.Cwd, p.Cwd); err != nil {
		return "", err
	}
	var made protocol.SessionNewResult
	err := a.daemon.call(ctx, "session/fork", protocol.SessionForkParams{Mutation: newMutation(), SessionID: p.SessionID}, &made)
	return made.SessionID, err
}

// drop deletes a session that was created for a request that then failed.
func (a *agent) drop(ctx context.Context, id protocol.SessionID) {
	p := protocol.SessionMutationParams{Mutation: newMutation(), SessionID: id}
	if err := a.daemon.call(context.WithoutCancel(ctx), "session/delete", p, nil); err != nil {
		a.Log.Warn("could not delete an incomplete session", "session", id, "error", err)
	}
}
