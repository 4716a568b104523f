package engine

import (
	"context"
	"slices"
	"sync"

	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// taskRaces are the waits that cancel the tasks which lose. Who waits is known in memory only; that it is decided cancels the others in the
// commit which decides it, as far as that is of their session, so that no crash comes in between.
type taskRaces struct {
	mu  sync.Mutex
	all map[*taskRace]bool
}

// taskRace is a wait for tasks, with whom the others are cancelled by.
type taskRace struct {
	rule    protocol.TaskRule
	by      string
	members map[workKey]bool
}

const lostRace = "another task of its group finished first"

// begin lets the end of a task decide a race, until that is ended.
func (rs *taskRaces) begin(r *taskRace) (end func()) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.all == nil {
		rs.all = map[*taskRace]bool{}
	}
	rs.all[r] = true
	return func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		delete(rs.all, r)
	}
}

// decided are the races that the end of a task decides.
func (rs *taskRaces) decided(t *protocol.Task) (won []*taskRace) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for r := range rs.all {
		if r.members[workKey{t.SessionID, t.ID}] && wins(r.rule, t) {
			won = append(won, r)
		}
	}
	return won
}

// wins tells whether a task that is over ends a wait for it and others although these are not.
func wins(rule protocol.TaskRule, t *protocol.Task) bool {
	return rule == protocol.WaitFirst || rule == protocol.WaitFirstSuccess && t.State == protocol.TaskCompleted
}

// cancelRaceLosers cancels the tasks that lose to one that is over.
func (ts sessionTasks) cancelRaceLosers(d *live.Draft, winner protocol.Task) {
	for _, r := range ts.st.eng.races.decided(&winner) {
		for _, t := range ts.All() {
			if r.members[workKey{ts.st.id, t.ID}] {
				t, _ = d.Find(t.ID)
				d.Cancel(t, r.by, lostRace)
			}
		}
	}
}

// enter begins the race of a wait that cancels the losers.
func (ts *Tasks) beginRace(ctx context.Context, client protocol.ClientID, p *protocol.TaskWaitParams) (end func(), err error) {
	if p.Losers != protocol.LosersCancel {
		return func() {}, nil
	}
	now, err := ts.poll(ctx, p)
	if err != nil {
		return nil, err
	}
	r := &taskRace{rule: p.Rule, by: asker(client), members: map[workKey]bool{}}
	for _, t := range slices.Concat(now.Settled, now.Live) {
		r.members[workKey{t.SessionID, t.ID}] = true
	}
	return ts.eng.races.begin(r), nil
}

// cancelLosers cancels what a race has left, as it was decided before it began, or in another session.
func (ts *Tasks) cancelLosers(ctx context.Context, client protocol.ClientID, left []protocol.Task) error {
	losers := map[protocol.SessionID][]protocol.TaskID{}
	for _, t := range left {
		if t.CancelRequested == nil {
			losers[t.SessionID] = append(losers[t.SessionID], t.ID)
		}
	}
	for session, ids := range losers {
		_, err := do(ctx, ts.eng, session, func(ctx context.Context, st *state) (struct{}, error) {
			return struct{}{}, st.tasks.move(ctx, func(d *live.Draft) {
				for _, t := range st.tasks.All() {
					if slices.Contains(ids, t.ID) {
						d.Cancel(t, asker(client), lostRace)
					}
				}
			})
		})
		if err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}
