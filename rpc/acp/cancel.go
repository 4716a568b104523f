package acp

import (
	"context"
	"slices"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// cancel stops what the editor has asked of a session.
func (a *agent) cancel(_ context.Context, r *request, p *sdk.CancelNotification) (*none, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	s.prompts.cancel(s.prompts.underWay()...)
	r.admit()
	return nil, nil
}

// cancel stops what prompts have begun. It does not wait for the daemon.
func (p *prompts) cancel(some ...*prompt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pr := range some {
		pr.cancelled = true
		if pr.stop != nil {
			pr.stop()
		}
	}
	p.wg.Go(func() {
		awaitSent(some)
		p.takeBack(some...)
	})
}

// sendLimit bounds how long a cancellation waits for prompts that are being sent.
const sendLimit = time.Second

// awaitSent waits until the daemon has answered which inputs the prompts are. The turn that they wait for may be interrupted only after they
// are withdrawn: otherwise they would get a turn of their own.
func awaitSent(some []*prompt) {
	late := time.After(sendLimit)
	for _, pr := range some {
		select {
		case <-pr.sent:
		case <-late:
			return
		}
	}
}

// takeBack withdraws what no turn has taken in, and interrupts the turns of the others. In this order: an input that waits for a turn
// which is interrupted would get one of its own.
func (p *prompts) takeBack(some ...*prompt) {
	turns := map[protocol.TurnID]bool{}
	for _, pr := range some {
		if p.withdrawn(pr) {
			pr.end(ending{stop: sdk.StopReasonCancelled})
			continue
		}
		p.mu.Lock()
		turns[pr.within], turns[pr.turn] = true, true
		p.mu.Unlock()
	}
	delete(turns, "")
	for turn := range turns {
		p.interrupt(turn)
	}
}

func (p *prompts) withdrawn(pr *prompt) bool {
	p.mu.Lock()
	params := protocol.QueueCancelParams{Mutation: once(), SessionID: p.id, InputID: pr.input}
	waits, done := pr.input != "" && pr.turn == "", pr.withdrawn
	p.mu.Unlock()
	if done {
		return true
	}
	var r protocol.QueueCancelResult
	if !waits || p.daemon.call(context.WithoutCancel(p.ctx), "queue/cancel", params, &r) != nil {
		return false
	}
	done = slices.ContainsFunc(r.Data, func(in protocol.CancelledInput) bool {
		return in.InputID == params.InputID && in.Status == protocol.CancelDone
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	pr.withdrawn = done
	return done
}

func (s *ref) interrupt(turn protocol.TurnID) {
	p := protocol.TurnInterruptParams{Mutation: once(), TurnID: turn, Reason: "cancelled in the editor"}
	if err := s.daemon.call(context.WithoutCancel(s.ctx), "turn/interrupt", p, nil); err != nil {
		s.Log.Warn("could not interrupt a turn", "session", s.id, "turn", turn, "error", err)
	}
}
