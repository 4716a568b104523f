package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"lashd/engine/turn"
	"lashd/persistence"
)

// open counts the calls without a result.
func open(stages []*stage) (n int) {
	for _, s := range stages {
		if s.reply == nil {
			n++
		}
	}
	return n
}

// keepResults makes the results durable that came while the daemon stopped. Of the other calls nobody knows what
// became of them.
func (r *run) keepResults(stages []*stage) error {
	rank(stages)
	rows := r.results(stages)
	if len(rows) == 0 {
		return nil
	}
	return r.keepRows(rows)
}

// keepRows makes results durable. Where one must not be made again, it does so at once, as the others of its batch may take
// long; if that fails it is stored with them.
func (r *run) keepRows(rows []persistence.Effect) error {
	_, err := ask(r, func(ctx context.Context, st *state) (struct{}, error) {
		c := st.turnChange(r)
		c.Effects = append(c.Effects, rows...)
		return struct{}{}, st.commitTurn(ctx, r, c)
	})
	return err
}

// settling is a batch whose calls come to their results beside each other.
type settling struct {
	run     *run
	stages  []*stage
	keeping sync.Mutex // held by who makes results durable: what comes meanwhile is the next one's, together
	mu      sync.Mutex
}

// addResult notes a result, and tells whether others are still to come.
func (b *settling) addResult(s *stage, reply *turn.ToolReply) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.reply = reply
	rank(b.stages)
	return open(b.stages) > 0
}

// keep makes the results durable that there are.
func (b *settling) keep() {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	for {
		b.mu.Lock()
		rest := unstored(b.stages)
		rows := b.run.portion(rest)
		b.mu.Unlock()
		if len(rows) == 0 || b.run.keepRows(rows) != nil {
			return
		}
		b.mu.Lock()
		for _, s := range rest[:len(rows)] {
			s.stored = true
		}
		b.mu.Unlock()
	}
}

// portion are the rows of the first results of many: half of what a commit may hold, or one.
func (r *run) portion(results []*stage) (rows []persistence.Effect) {
	size := 0
	for _, s := range results {
		row := r.callRow(s)
		if size += len(row.Body); size > persistence.MaxCommitBytes/2 && len(rows) > 0 {
			break
		}
		rows = append(rows, row)
	}
	return rows
}

// keepMany makes results durable that are too many for one commit, and gives the rows of the last ones.
func (r *run) keepMany(stages []*stage) (last []persistence.Effect, err error) {
	rank(stages)
	rest := unstored(stages)
	for {
		rows := r.portion(rest)
		if len(rows) == len(rest) {
			return rows, nil
		}
		if err := r.keepRows(rows); err != nil {
			return nil, err
		}
		rest = rest[len(rows):]
	}
}

// rank gives the results that have no place in the order of settlement yet the next ones, in the order of their calls.
func rank(stages []*stage) {
	next := 0
	for _, s := range stages {
		if s.ranked {
			next++
		}
	}
	for _, s := range stages {
		if s.reply != nil && !s.ranked {
			s.reply.Order, s.ranked = next, true
			next++
		}
	}
}

// results are the rows of the results that are not stored.
func (r *run) results(stages []*stage) []persistence.Effect { return r.rows(unstored(stages)) }

func (r *run) rows(stages []*stage) (rows []persistence.Effect) {
	for _, s := range stages {
		rows = append(rows, r.callRow(s))
	}
	return rows
}

// unstored are the calls whose results are not stored, in the order of settlement.
func unstored(stages []*stage) (results []*stage) {
	for _, s := range stages {
		if s.reply != nil && !s.stored {
			results = append(results, s)
		}
	}
	slices.SortFunc(results, func(a, b *stage) int { return cmp.Compare(a.reply.Order, b.reply.Order) })
	return results
}
