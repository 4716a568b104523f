package acp

import (
	"context"
	"slices"
	"time"

	"lashd/rpc/protocol"
)

// stored waits until the daemon has what the editor has sent before now: only then it is known whose input an event tells of. It
// never is if the connection ends first: then it is asked for again.
func (p *prompts) stored(ctx context.Context, l *link) bool {
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
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
	case <-l.Gone():
	case <-ctx.Done():
	}
	return false
}

// attached says on which connection the session is attached.
func (p *prompts) attached(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link = l
	close(p.relinked)
	p.relinked = make(chan struct{})
}

// awaitAttached waits until the session is attached on a connection: what is begun before that could be over before anybody is told of it.
func (p *prompts) awaitAttached(l *link) {
	limit := time.NewTimer(maxLosses * stopPatrol)
	defer limit.Stop()
	for {
		p.mu.Lock()
		on, moved := p.link, p.relinked
		p.mu.Unlock()
		if on == l {
			return
		}
		select {
		case <-moved:
		case <-l.Gone():
			return
		case <-p.done:
			return
		case <-limit.C:
			return
		}
	}
}

// entered notes which turn has taken a prompt in, and tells whether one has. If it was cancelled before, so is the turn.
func (p *prompts) entered(ev *protocol.Event) (ours bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pr := range p.all {
		if pr.input == "" || !slices.Contains(ev.InputIDs, pr.input) {
			continue
		}
		pr.turn, ours = ev.TurnID, true
		if pr.cancelled && pr.turn != pr.within {
			p.wg.Go(func() { p.interrupt(ev.TurnID) })
		}
	}
	return ours
}

// own tells whether an item is what the editor itself has sent: it shows that already.
func (p *prompts) own(item *protocol.Item) bool {
	if item.Kind != protocol.ItemUserMessage || item.Origin == nil || item.Origin.InputID == "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.all, func(pr *prompt) bool { return pr.input == item.Origin.InputID })
}

// settle answers the prompts that a turn took in. One that is followed by another is not their end.
func (p *prompts) settle(ev *protocol.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pr := range p.all {
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
func (p *prompts) recover(ctx context.Context) {
	for _, pr := range p.underWay() {
		p.mu.Lock()
		turn := pr.within
		p.mu.Unlock()
		if turn == "" {
			continue
		}
		p.work.Go(func() {
			params := protocol.TurnWaitParams{TurnID: turn, Follow: true}
			var report protocol.TurnReport
			if err := p.daemon.call(ctx, "turn/wait", params, &report); err != nil {
				pr.end(ending{err: err})
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			pr.settle(report.Outcome, report.Issues)
		})
	}
}

// abandon ends what waits for a daemon that does not come back.
func (p *prompts) abandon(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pr := range p.all {
		pr.end(ending{err: err})
	}
}
