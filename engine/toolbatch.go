package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// batch is calls that are made together: those of an answer of the model, or those that one of these makes.
type batch struct {
	*callMaker
	asks      *asks
	store     *turnStore
	emissions *emissions
	calls     []*toolCall

	storing sync.Mutex // held while results are stored; results that arrive then are stored together by the next holder
	mu      sync.Mutex // guards replies, ranks and stored flags while calls run
}

// newBatch is calls of the turn.
func (r *run) newBatch(m *callMaker, calls []*toolCall) *batch {
	return &batch{callMaker: m, asks: &r.asks, store: r.store, emissions: &r.emissions, calls: calls}
}

// batchOf is the batch that an effect asks for, with what the journal knows of its calls.
func (r *run) batchOf(effect turn.Effect) (*batch, error) {
	m := &callMaker{session: r.session, caller: r, hooks: r.hooks, catalog: r.prompt.catalog, frame: r.journal.begin.Frame}
	b := r.newBatch(m, make([]*toolCall, len(effect.Tools.Calls)))
	for i, call := range effect.Tools.Calls {
		b.calls[i] = &toolCall{original: call, ToolCall: call, effect: effect.ID, ordinal: i}
		b.calls[i].find(m.catalog)
	}
	for _, row := range r.journal.replay[effect.ID] {
		if err := b.restoreCall(row); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// recall takes what the journal knows of a call of the batch, or of one that such a call makes.
func (b *batch) restoreCall(row persistence.Effect) error {
	maker, made := row.Ordinal/maxNestedCalls-1, row.Ordinal%maxNestedCalls
	switch {
	case maker >= len(b.calls), maker < 0 && made >= len(b.calls):
		return &JournalError{Effect: row.ID, Kind: "tools", Diff: fmt.Sprintf("call %d", row.Ordinal)}
	case maker >= 0:
		b.calls[maker].inner.addRow(made, row)
		return nil
	}
	return b.calls[made].restore(row)
}

// knownBatch is the answer to a batch of which all calls have their results, and nothing is left to be done.
func (r *run) knownBatch(e turn.Effect) (turn.Response, bool, error) {
	b, err := r.batchOf(e)
	if err != nil {
		return turn.Response{}, false, err
	}
	for _, s := range b.calls {
		if !s.stored || s.overdue || s.wants() {
			return turn.Response{}, false, nil
		}
	}
	for _, s := range b.calls {
		r.emissions.add(s)
		r.seams.queuedMessages = append(r.seams.queuedMessages, s.messages...)
	}
	return turn.Response{Tools: replies(b.calls)}, true, nil
}

// runTools runs a batch. No call runs before the fact that it is started is durable; no result is shown to the model
// before it is durable. When the turn is cancelled, each call gets its result all the same.
func (r *run) runTools(ctx context.Context, effect turn.Effect) error {
	b, err := r.batchOf(effect)
	if err != nil {
		return err
	}
	r.batch = b
	err = b.perform(ctx)
	if !r.store.suspended() {
		r.files.ToolsEnd(ctx)
	}
	switch {
	case errors.As(err, new(*cancelled)):
		b.cancelRest(ctx)
	case err != nil && r.store.suspended():
		return errors.Join(err, b.storeSettled())
	case err != nil:
		return err
	}
	return r.collect(ctx, effect, b)
}

// collect makes the results of a batch durable and gives them to the machine.
func (r *run) collect(ctx context.Context, effect turn.Effect, b *batch) error {
	if err := b.commitIntents(ctx); err != nil {
		return err
	}
	rows, err := b.storeAllButLast()
	if err != nil {
		return err
	}
	for _, s := range b.calls {
		r.seams.queuedMessages = append(r.seams.queuedMessages, s.messages...)
	}
	r.deliver(effect, turn.Response{Tools: replies(b.calls)})
	r.batch = nil
	if r.journal.finished() {
		return nil // the commit that ends the turn follows at once
	}
	return r.store.flush(ctx, rows)
}

// perform brings the calls to their results. After an error, some may be without.
func (b *batch) perform(ctx context.Context) error {
	for _, step := range []func(context.Context, []*toolCall) error{b.hooks.beforeCalls, b.asks.settle, b.scanFiles, b.start, b.dispatch} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := step(ctx, b.calls); err != nil {
			return err
		}
	}
	return checkOverdue(b.calls)
}

// makeNested brings calls that a call makes to their results, and makes these durable.
func (b *batch) makeNested(ctx context.Context) error {
	err := b.perform(ctx)
	switch {
	case errors.As(err, new(*OverdueError)): // the turn fails once the outer call has returned
	case errors.As(err, new(*cancelled)):
		b.cancelRest(ctx)
	case err != nil:
		return errors.Join(err, b.storeSettled())
	}
	rank(b.calls)
	if rows := b.rows(unstored(b.calls)); len(rows) > 0 {
		if err := b.store.flush(ctx, rows); err != nil {
			return err
		}
	}
	for _, s := range b.calls {
		s.stored = true
	}
	return nil
}

// beforeFiles has the files looked at if calls may change some.
func (b *batch) scanFiles(ctx context.Context, calls []*toolCall) error {
	if changesFiles(calls) {
		b.caller.filePoint().LookBefore(ctx)
	}
	return nil
}

// changesFiles tells whether calls that are about to run may change files.
func changesFiles(calls []*toolCall) bool {
	for _, s := range calls {
		if s.reply != nil || s.entry == nil {
			continue
		}
		switch s.entry.Manifest.Kind {
		case protocol.ToolKindRead, protocol.ToolKindSearch, protocol.ToolKindThink, protocol.ToolKindFetch:
		default:
			return true
		}
	}
	return false
}

// start makes durable that calls are about to run: those that run at once. The others are begun when it is their turn.
func (b *batch) start(ctx context.Context, calls []*toolCall) error {
	var first []*toolCall
	for _, s := range calls {
		if s.reply == nil && s.entry == nil { // a person chose to run it again, but the tool no longer exists
			s.check(b.catalog)
		}
		if s.reply == nil && !s.entry.Terms().Serial {
			first = append(first, s)
		}
	}
	return b.markStarted(ctx, first...)
}

// begun makes durable that calls run now.
func (b *batch) markStarted(ctx context.Context, calls ...*toolCall) error {
	var rows []persistence.Effect
	for _, s := range calls {
		if !s.awaitsCompletion() && s.clientOutput == nil {
			s.begin()
			rows = append(rows, b.row(s))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := b.store.flush(ctx, rows); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// dispatch runs the calls that have no result: all at once, except those whose tool wants to be alone. If the turn is
// left, some calls may still be without. The order in which they settle is that in which their results become durable:
// whatever is stored of a batch, nothing that settled before it is missing.
func (b *batch) dispatch(ctx context.Context, calls []*toolCall) error {
	rank(calls)
	b.caller.filePoint().ToolsStart()
	var wg sync.WaitGroup
	var serial []*toolCall
	for _, s := range calls {
		switch {
		case s.reply != nil:
		case s.entry.Terms().Serial:
			serial = append(serial, s)
		default:
			wg.Go(func() { b.make(ctx, s) })
		}
	}
	wg.Wait()
	for _, s := range serial {
		if context.Cause(ctx) != nil {
			break
		}
		if err := b.markStarted(ctx, s); err != nil {
			return err
		}
		b.make(ctx, s)
	}
	return context.Cause(ctx)
}

// make makes a call. A result that must not be made again is durable then, as the others of the batch may take long; if it cannot be stored,
// it is stored with theirs.
func (b *batch) make(ctx context.Context, s *toolCall) {
	reply, ok := b.callWithRetries(ctx, s)
	if ok && b.addResult(s, &reply) && !s.repeatable() {
		b.keep()
	}
}

// addResult notes a result, and tells whether others are still to come.
func (b *batch) addResult(s *toolCall, reply *turn.ToolReply) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.reply = reply
	rank(b.calls)
	return countOpen(b.calls) > 0
}

// open counts the calls without a result.
func countOpen(calls []*toolCall) (n int) {
	for _, s := range calls {
		if s.reply == nil {
			n++
		}
	}
	return n
}

// keep makes the results durable that there are.
func (b *batch) keep() {
	b.storing.Lock()
	defer b.storing.Unlock()
	for {
		b.mu.Lock()
		rest := unstored(b.calls)
		rows := b.portion(rest)
		b.mu.Unlock()
		if len(rows) == 0 || b.store.keep(rows...) != nil {
			return
		}
		b.mu.Lock()
		for _, s := range rest[:len(rows)] {
			s.stored = true
		}
		b.mu.Unlock()
	}
}

// keepMany makes results durable that are too many for one commit, and gives the rows of the last ones.
func (b *batch) storeAllButLast() (last []persistence.Effect, err error) {
	rank(b.calls)
	rest := unstored(b.calls)
	for {
		rows := b.portion(rest)
		if len(rows) == len(rest) {
			return rows, nil
		}
		if err := b.store.keep(rows...); err != nil {
			return nil, err
		}
		rest = rest[len(rows):]
	}
}

// keepResults makes the results durable that came while the daemon stopped. Of the other calls nobody knows what
// became of them.
func (b *batch) storeSettled() error {
	rank(b.calls)
	rows := b.rows(unstored(b.calls))
	if len(rows) == 0 {
		return nil
	}
	return b.store.keep(rows...)
}

// portion are the rows of the first results of many: half of what a commit may hold, or one.
func (b *batch) portion(results []*toolCall) (rows []persistence.Effect) {
	size := 0
	for _, s := range results {
		row := b.row(s)
		if size += len(row.Body); size > persistence.MaxCommitBytes/2 && len(rows) > 0 {
			break
		}
		rows = append(rows, row)
	}
	return rows
}

func (b *batch) rows(calls []*toolCall) (rows []persistence.Effect) {
	for _, s := range calls {
		rows = append(rows, b.row(s))
	}
	return rows
}

// rank gives the results that have no place in the order of settlement yet the next ones, in the order of their calls.
func rank(calls []*toolCall) {
	next := 0
	for _, s := range calls {
		if s.ranked {
			next++
		}
	}
	for _, s := range calls {
		if s.reply != nil && !s.ranked {
			s.reply.Order, s.ranked = next, true
			next++
		}
	}
}

// unstored are the calls whose results are not stored, in the order of settlement.
func unstored(calls []*toolCall) (results []*toolCall) {
	for _, s := range calls {
		if s.reply != nil && !s.stored {
			results = append(results, s)
		}
	}
	slices.SortFunc(results, func(a, b *toolCall) int { return cmp.Compare(a.reply.Order, b.reply.Order) })
	return results
}

// replies are the results of calls that all have one.
func replies(calls []*toolCall) []turn.ToolReply {
	rank(calls)
	all := make([]turn.ToolReply, len(calls))
	for i, s := range calls {
		all[i] = *s.reply
	}
	return all
}
