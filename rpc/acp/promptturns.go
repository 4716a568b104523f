package acp

import (
	"context"
	"slices"
	"time"

	"lashd/rpc/protocol"
)

// stored waits until the daemon has answered all prompts that it was sent so far,
// because only then their input ids are known and an event can be matched to
// its prompt. A prompt that still asks for resources delays no event. It returns false if the connection ends or ctx is done first. The
// event must then be handled after the session is attached again.
func (p *prompts) stored(ctx context.Context, l *link) bool {
	p.mu.Lock()
	last := p.starting
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

// attached records the connection on which the session is attached now, or nil if it
// is not attached.
func (p *prompts) attached(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link = l
	close(p.relinked)
	p.relinked = make(chan struct{})
}

// awaitAttached waits until the session is attached on l. A turn started earlier
// could end before its events are received. It gives up when the connection or the
// session ends, or after a time limit: starting the turn is then still better than
// not answering.
func (p *prompts) awaitAttached(l *link) {
	limit := time.NewTimer(maxLosses * reconnectInterval)
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

// recordTurn records the turn that used the inputs of an event, and reports
// whether any of them is a prompt of this editor. If that prompt was cancelled
// before, recordTurn interrupts the turn.
func (p *prompts) recordTurn(ev *protocol.Event) (ours bool) {
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

// own reports whether an item is a message that this editor sent. The editor shows
// it already.
func (p *prompts) own(item *protocol.Item) bool {
	if item.Kind != protocol.ItemUserMessage || item.Origin == nil || item.Origin.InputID == "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.all, func(pr *prompt) bool { return pr.input == item.Origin.InputID })
}

// settle answers the prompts of a turn that has ended. If another turn continues
// it, such as after a frame switch, the prompts wait for that one.
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

// recover answers prompts whose events are missing because the log has a gap. It
// waits for their turns with turn/wait, on goroutines counted in p.work.
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

// abandon answers all prompts with an error, after the daemon could not be reached
// or the session is gone.
func (p *prompts) abandon(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pr := range p.all {
		pr.end(ending{err: err})
	}
}
