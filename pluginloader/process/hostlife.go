package process

import (
	"context"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// createSession implements host/createSession. The new session works for the session of the call
// and cannot have more rights than it.
func createSession(ctx context.Context, g *grant, p *struct {
	granted
	Session protocol.SessionNewParams `json:"session"`
}) (*protocol.SessionNewResult, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return nil, err
	}
	return s.CreateSession(ctx, &p.Session)
}

// firstInput is the first input of a session. Found is false if a turn already has it.
type firstInput struct {
	Input []protocol.InputPart `json:"input,omitempty"`
	Found bool                 `json:"found"`
}

// takeFirstTurnInput implements host/takeFirstTurnInput: it takes the first input of a session, if
// no turn has it yet.
func takeFirstTurnInput(ctx context.Context, g *grant, p *ofSession) (*firstInput, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return nil, err
	}
	input, found, err := s.TakeFirstTurnInput(ctx, p.SessionID)
	return &firstInput{input, found}, err
}

// closeSession implements host/closeSession.
func closeSession(ctx context.Context, g *grant, p *ofSession) (struct{}, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, s.CloseSession(ctx, p.SessionID)
}

// turnID names a turn.
type turnID struct {
	granted
	TurnID protocol.TurnID `json:"turnId"`
}

// startTurn implements host/startTurn: it starts a turn of another session in reach.
func startTurn(ctx context.Context, g *grant, p *struct {
	granted
	plugin.TurnRequest
}) (*struct {
	TurnID protocol.TurnID `json:"turnId"`
}, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return nil, err
	}
	id, err := s.StartTurn(ctx, &p.TurnRequest)
	return &struct {
		TurnID protocol.TurnID `json:"turnId"`
	}{id}, err
}

// injectTurnInput implements host/injectTurnInput: it steers a running turn of another session. The
// input is durable when the request returns.
func injectTurnInput(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TurnSteerParams
}) (*struct {
	InputID protocol.InputID `json:"inputId"`
}, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return nil, err
	}
	id, err := s.InjectTurnInput(ctx, &p.TurnSteerParams)
	return &struct {
		InputID protocol.InputID `json:"inputId"`
	}{id}, err
}

// awaitTurn implements host/awaitTurn: it waits for the end of a turn and returns its report. The
// wait counts as time of the plugin's call.
func awaitTurn(ctx context.Context, g *grant, p *turnID) (*protocol.TurnReport, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return nil, err
	}
	return s.AwaitTurn(ctx, p.TurnID)
}

// cancelTurn implements host/cancelTurn.
func cancelTurn(ctx context.Context, g *grant, p *turnID) (struct{}, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, s.CancelTurn(ctx, p.TurnID)
}
