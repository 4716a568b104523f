package engine

import (
	"context"
	"slices"
	"sync"

	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// taskRaces keeps the waits that cancel the losing tasks (losers: cancel). They are in memory only:
// after a restart no client waits for the answer any more. When a task's end decides a race, the
// losers of the same session are cancelled in the commit of that end, so a crash cannot come
// between. Losers in other sessions are cancelled afterwards. It is safe for concurrent use.
type taskRaces struct {
	mu  sync.Mutex
	all map[*taskRace]bool
}

// taskRace is one such wait: its rule, the name that is recorded as the origin of the cancellation,
// and its tasks.
type taskRace struct {
	rule    protocol.TaskRule
	by      string
	members map[workKey]bool
}

// lostRace is the reason of the cancellation, which the loser's record shows.
const lostRace = "another task of its group finished first"

// begin adds a race. Until end is called, the end of a member may decide it. end may be called more
// than once.
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

// decided returns the races that the end of task t decides.
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

// wins reports whether the end of a task satisfies the rule although other tasks are still live.
func wins(rule protocol.TaskRule, t *protocol.Task) bool {
	return rule == protocol.WaitFirst || rule == protocol.WaitFirstSuccess && t.State == protocol.TaskCompleted
}

// cancelRaceLosers adds to the draft that ends the winner the cancellation of the losers in the
// same session.
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

// beginRace begins the race of a wait with losers "cancel" and returns the function that ends it.
// For other waits the function does nothing.
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

// cancelLosers cancels the live tasks that lost: those of other sessions, and all of them if the
// race was decided before it began. Tasks that are asked to end already are left out.
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
