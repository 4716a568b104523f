package acp

import (
	"context"
	"slices"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// cancel handles session/cancel: it stops every prompt of the session that has not
// been answered. The prompts themselves are answered with the stop reason
// "cancelled".
func (a *agent) cancel(_ context.Context, r *request, p *sdk.CancelNotification) (*none, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	s.prompts.cancel(s.prompts.underWay()...)
	r.admit()
	return nil, nil
}

// cancel marks prompts as cancelled and stops them: commands at once, inputs and
// turns through the daemon. It returns without waiting for the daemon, so that a
// session/cancel never blocks later messages.
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
		p.withdrawOrInterrupt(some...)
	})
}

// sendLimit bounds how long a cancellation waits until the daemon has answered the
// prompts' turn/start requests.
const sendLimit = time.Second

// awaitSent waits until the daemon has returned the input ids of the prompts, or
// sendLimit has passed. Queued inputs must be withdrawn before the turn is
// interrupted: otherwise the daemon would give them a turn of their own.
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

// withdrawOrInterrupt withdraws the inputs that no turn has used yet and
// interrupts the turns that have used the others. It withdraws first: an input
// queued behind an interrupted turn would get a turn of its own.
func (p *prompts) withdrawOrInterrupt(some ...*prompt) {
	turns := map[protocol.TurnID]bool{}
	for _, pr := range some {
		if p.withdrawQueued(pr) {
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

// withdrawQueued removes the prompt's input from the daemon's queue and reports
// whether it is out of the queue. It returns false if a turn has used the input,
// if the daemon has not stored it yet, or if the call failed. The caller then
// interrupts the turn.
func (p *prompts) withdrawQueued(pr *prompt) bool {
	p.mu.Lock()
	params := protocol.QueueCancelParams{Mutation: newMutation(), SessionID: p.id, InputID: pr.input}
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

// interrupt stops a turn. It uses a context that outlives the editor's request: a
// cancellation takes effect even if the editor disconnects. Failures are logged
// only, since the editor sent a notification.
func (s *ref) interrupt(turn protocol.TurnID) {
	p := protocol.TurnInterruptParams{Mutation: newMutation(), TurnID: turn, Reason: "cancelled in the editor"}
	if err := s.daemon.call(context.WithoutCancel(s.ctx), "turn/interrupt", p, nil); err != nil {
		s.Log.Warn("could not interrupt a turn", "session", s.id, "turn", turn, "error", err)
	}
}
