package acp

import (
	"context"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// cancel stops what the editor has asked of a session.
func (a *agent) cancel(_ context.Context, r *request, p *sdk.CancelNotification) (*none, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	all := slices.Clone(s.prompts)
	s.mu.Unlock()
	s.cancelPrompts(all...)
	r.admit()
	return nil, nil
}

// cancelPrompts stops what prompts have begun. It does not wait for the daemon.
func (s *session) cancelPrompts(prompts ...*prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pr := range prompts {
		pr.cancelled = true
		if pr.stop != nil {
			pr.stop()
		}
	}
	s.wg.Go(func() { s.takeBack(prompts...) })
}

// takeBack withdraws what no turn has taken in, and interrupts the turns of the others. In this order: an input that waits for a turn
// which is interrupted would get one of its own.
func (s *session) takeBack(prompts ...*prompt) {
	turns := map[protocol.TurnID]bool{}
	for _, pr := range prompts {
		if s.withdrawn(pr) {
			pr.end(ending{stop: sdk.StopReasonCancelled})
			continue
		}
		s.mu.Lock()
		turns[pr.within], turns[pr.turn] = true, true
		s.mu.Unlock()
	}
	delete(turns, "")
	for turn := range turns {
		s.interrupt(turn)
	}
}

func (s *session) withdrawn(pr *prompt) bool {
	s.mu.Lock()
	p := protocol.QueueCancelParams{Mutation: once(), SessionID: s.id, InputID: pr.input}
	waits := pr.input != "" && pr.turn == ""
	s.mu.Unlock()
	var r protocol.QueueCancelResult
	if !waits || s.daemon.call(context.WithoutCancel(s.ctx), "queue/cancel", p, &r) != nil {
		return false
	}
	return slices.ContainsFunc(r.Data, func(in protocol.CancelledInput) bool {
		return in.InputID == p.InputID && in.Status == protocol.CancelDone
	})
}

func (s *session) interrupt(turn protocol.TurnID) {
	p := protocol.TurnInterruptParams{Mutation: once(), TurnID: turn, Reason: "cancelled in the editor"}
	if err := s.daemon.call(context.WithoutCancel(s.ctx), "turn/interrupt", p, nil); err != nil {
		s.Log.Warn("a turn was not interrupted", "session", s.id, "turn", turn, "error", err)
	}
}
