package acp

import (
	"context"
	"slices"
	"time"

	"lashd/rpc/protocol"
)

// knownInputs waits until the daemon has what the editor has sent before now: only then it is known whose input an event tells of. It
// never is if the connection ends first: then it is asked for again.
func (s *session) knownInputs(ctx context.Context) bool {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last == nil {
		return true
	}
	select {
	case <-last:
		return true
	default:
	}
	select {
	case <-last:
		return true
	case <-s.link.Gone():
	case <-ctx.Done():
	}
	return false
}

// hear says on which connection the session is attached.
func (s *session) hear(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = l
	close(s.moved)
	s.moved = make(chan struct{})
}

// hears waits until the session is attached on a connection: what is begun before that could be over before anybody is told of it.
func (s *session) hears(l *link) {
	limit := time.NewTimer(maxLosses * stopPatrol)
	defer limit.Stop()
	for {
		s.mu.Lock()
		on, moved := s.heard, s.moved
		s.mu.Unlock()
		if on == l {
			return
		}
		select {
		case <-moved:
		case <-l.Gone():
			return
		case <-s.done:
			return
		case <-limit.C:
			return
		}
	}
}

// entered notes which turn has taken a prompt in. If it was cancelled before, so is the turn.
func (s *session) entered(ev *protocol.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := false
	for _, pr := range s.prompts {
		if pr.input == "" || !slices.Contains(ev.InputIDs, pr.input) {
			continue
		}
		pr.turn, ours = ev.TurnID, true
		if pr.cancelled && pr.turn != pr.within {
			s.wg.Go(func() { s.interrupt(ev.TurnID) })
		}
	}
	if !ours && ev.Type == protocol.EventTurnAccepted {
		s.view.accepted(ev)
	}
}

// own tells whether an item is what the editor itself has sent: it shows that already.
func (s *session) own(item *protocol.Item) bool {
	if item.Kind != protocol.ItemUserMessage || item.Origin == nil || item.Origin.InputID == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.prompts, func(pr *prompt) bool { return pr.input == item.Origin.InputID })
}

// settle answers the prompts that a turn took in. One that is followed by another is not their end.
func (s *session) settle(ev *protocol.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pr := range s.prompts {
		switch {
		case pr.turn != ev.TurnID:
		case ev.Follower != "":
			pr.turn, pr.within = ev.Follower, ev.Follower
		default:
			pr.settle(ev.Outcome, ev.Issues)
		}
	}
}

// recover settles prompts whose events cannot be had any more.
func (s *session) recover(ctx context.Context) {
	s.mu.Lock()
	waiting := slices.Clone(s.prompts)
	s.mu.Unlock()
	for _, pr := range waiting {
		s.mu.Lock()
		turn := pr.within
		s.mu.Unlock()
		if turn == "" {
			continue
		}
		s.work.Go(func() {
			p := protocol.TurnWaitParams{TurnID: turn, Follow: true}
			var report protocol.TurnReport
			if err := s.daemon.call(ctx, "turn/wait", p, &report); err != nil {
				pr.end(ending{err: err})
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			pr.settle(report.Outcome, report.Issues)
		})
	}
}

// abandonPrompts ends what waits for a daemon that does not come back.
func (s *session) abandonPrompts(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pr := range s.prompts {
		pr.end(ending{err: err})
	}
}
