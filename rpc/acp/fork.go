package acp

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// forkRequest is the SDK's, with the servers of the stable part of the protocol.
type forkRequest struct {
	SessionID             protocol.SessionID `json:"sessionId"`
	Cwd                   string             `json:"cwd"`
	McpServers            []sdk.McpServer    `json:"mcpServers"`
	AdditionalDirectories []string           `json:"additionalDirectories"`
}

// forkResult is the SDK's, likewise.
type forkResult struct {
	SessionID     protocol.SessionID        `json:"sessionId"`
	Modes         *sdk.SessionModeState     `json:"modes,omitempty"`
	Models        *sdk.SessionModelState    `json:"models,omitempty"`
	ConfigOptions []sdk.SessionConfigOption `json:"configOptions,omitempty"`
}

// forkSession makes a session that shares the whole history of another one, in the same workspace. Its history is not replayed.
func (a *agent) forkSession(ctx context.Context, r *request, p *forkRequest) (*forkResult, error) {
	r.admit()
	b, err := a.broughtBy(p.McpServers, p.AdditionalDirectories)
	switch {
	case err != nil:
		return nil, err
	case p.SessionID == "":
		return nil, noSession()
	case p.Cwd == "":
		return nil, bad("/cwd", "is required")
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

func (a *agent) fork(ctx context.Context, p *forkRequest) (protocol.SessionID, error) {
	var source protocol.SessionReadResult
	if err := a.daemon.call(ctx, "session/read", protocol.SessionReadParams{SessionID: p.SessionID, Limit: 1}, &source); err != nil {
		return "", err
	}
	if err := sameDirectory(source.Session.Cwd, p.Cwd); err != nil {
		return "", err
	}
	var made protocol.SessionNewResult
	err := a.daemon.call(ctx, "session/fork", protocol.SessionForkParams{Mutation: once(), SessionID: p.SessionID}, &made)
	return made.SessionID, err
}

// drop removes a session that the editor was not given.
func (a *agent) drop(ctx context.Context, id protocol.SessionID) {
	p := protocol.SessionMutationParams{Mutation: once(), SessionID: id}
	if err := a.daemon.call(context.WithoutCancel(ctx), "session/delete", p, nil); err != nil {
		a.Log.Warn("could not delete an incomplete session", "session", id, "error", err)
	}
}
