package process

import (
	"context"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

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

func takeFirstTurnInput(ctx context.Context, g *grant, p *ofSession) (*firstInput, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return nil, err
	}
	input, found, err := s.TakeFirstTurnInput(ctx, p.SessionID)
	return &firstInput{input, found}, err
}

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

func awaitTurn(ctx context.Context, g *grant, p *turnID) (*protocol.TurnReport, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return nil, err
	}
	return s.AwaitTurn(ctx, p.TurnID)
}

func cancelTurn(ctx context.Context, g *grant, p *turnID) (struct{}, error) {
	s, err := g.host.NeedLifecycle()
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, s.CancelTurn(ctx, p.TurnID)
}
