package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"lashd/engine/audit"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// batch is a group of calls that are made together: those of one model reply, or those that one
// call makes (nested calls). Calls of tools marked serial run one after the other, all others at
// once on goroutines of their own. Results become durable in the order in which they settle, so the
// journal never has a later result without an earlier one.
type batch struct {
	*callMaker
	asks      *asks
	store     *turnStore
	emissions *emissions
	calls     []*toolCall

	storing sync.Mutex // held while results are stored; results that arrive then are stored together by the next holder
	mu      sync.Mutex // guards replies, ranks and stored flags while calls run
}

// newBatch returns a batch of calls that belong to the turn.
func (r *run) newBatch(m *callMaker, calls []*toolCall) *batch {
	return &batch{callMaker: m, asks: &r.asks, store: r.store, emissions: &r.emissions, calls: calls}
}

// batchOf returns the batch of a tools effect. Calls that an earlier run started or finished get
// their state from the journal.
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
	r.journal.decide(b.calls)
	return b, nil
}

// restoreCall applies a journal row to the call it belongs to, or to the call that made it. It
// fails with *JournalError if the batch has no such call, which means that the replayed turn
// differs from the journaled one.
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

// knownBatch returns the answer to a batch from the journal if every call has its result and
// nothing is left to do. Otherwise it reports false, and the batch runs again for the calls without
// a result.
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

// runTools runs the batch of an effect and delivers the results. Each call's start is stored before
// it runs, and each result before the model sees it; so after a crash lashd knows which calls may
// have had effects. If the turn is cancelled, the remaining calls get the result "cancelled". If
// the turn is suspended, the results that arrived are stored for the next run.
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

// collect stores the results of a batch and gives them to the machine. If the turn ends with them,
// its last commit stores them.
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

// perform makes all calls of the batch, in steps: before-call hooks, approvals, a check of those that
// a person changed, a scan of the files, the stored start, the calls. Each step sees all calls and skips those that have a result
// already, such as denied ones. perform stops if ctx is done; after an error some calls may lack
// results.
func (b *batch) perform(ctx context.Context) error {
	for _, step := range []func(context.Context, []*toolCall) error{b.hooks.beforeCalls, b.settle, b.checkChanged, b.scanFiles, b.start, b.dispatch} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := step(ctx, b.calls); err != nil {
			return err
		}
	}
	return checkOverdue(b.calls)
}

// makeNested makes the calls that another call makes, and stores their results before that call
// gets them. A missed deadline of a nested completion is no error here: it fails the turn once the
// outer call has returned.
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
	if rows := b.rows(b.unstored()); len(rows) > 0 {
		if err := b.store.flush(ctx, rows); err != nil {
			return err
		}
	}
	for _, s := range b.calls {
		s.stored = true
	}
	return b.commitIntents(ctx)
}

// scanFiles records the state of the workspace before calls that may change files, for undo.
func (b *batch) scanFiles(ctx context.Context, calls []*toolCall) error {
	if changesFiles(calls) {
		b.caller.filePoint().LookBefore(ctx)
	}
	return nil
}

// changesFiles reports whether any call that is about to run may change files. Only tools of kinds
// that read are known not to.
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

// start stores that calls are about to run, for all that start at once. Serial calls are marked one
// by one when their turn comes.
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

// markStarted stores that calls run now, so that after a crash lashd knows that they may have had
// effects. Calls that only wait for a completion or have an output from their client are left out.
func (b *batch) markStarted(ctx context.Context, calls ...*toolCall) error {
	var rows []persistence.Effect
	var started audit.Queue
	for _, s := range calls {
		if !s.awaitsCompletion() && s.clientOutput == nil {
			s.begin()
			rows = append(rows, b.row(s))
			started.Add(b.caller.turnID(), s.CallID, s.decided.Starts(s.judged))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := b.store.flush(ctx, rows, started.Take()...); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// dispatch runs the calls that have no result: first all that may run together, then the serial
// ones in order. If the turn is suspended, some calls may stay without a result. Results rank in
// the order in which they settle and become durable in that order: if one is stored, so are all
// that settled before it.
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

// make makes one call. If the call must not be repeated, its result is stored at once, because
// other calls of the batch may take long. If that fails, the result is stored together with theirs.
func (b *batch) make(ctx context.Context, s *toolCall) {
	reply, ok := b.callWithRetries(ctx, s)
	if ok {
		b.showCellCall(s, &reply)
	}
	if ok && b.addResult(s, &reply) && !s.repeatable() {
		b.keep()
	}
}

// addResult records a result and its rank, and reports whether other calls are still without one.
func (b *batch) addResult(s *toolCall, reply *turn.ToolReply) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.reply = reply
	rank(b.calls)
	return slices.ContainsFunc(b.calls, func(s *toolCall) bool { return s.reply == nil })
}

// keep stores the results that have arrived, in commits of limited size. Only one goroutine stores
// at a time; results that arrive then are stored by the next. Errors are ignored here: the final
// commit of the batch stores what is left.
func (b *batch) keep() {
	b.storing.Lock()
	defer b.storing.Unlock()
	for {
		b.mu.Lock()
		rest := b.unstored()
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

// storeAllButLast stores results in commits of limited size and returns the rows that fit into the
// caller's next commit.
func (b *batch) storeAllButLast() (last []persistence.Effect, err error) {
	rank(b.calls)
	rest := b.unstored()
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

// storeSettled stores the results that arrived before the turn was suspended. The outcome of the
// other calls is unknown.
func (b *batch) storeSettled() error {
	rank(b.calls)
	rows := b.rows(b.unstored())
	if len(rows) == 0 {
		return nil
	}
	return b.store.keep(rows...)
}

// portion returns the journal rows of the first results that fit into half of a commit's limit, and
// at least one.
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

// rows returns the journal rows of calls.
func (b *batch) rows(calls []*toolCall) (rows []persistence.Effect) {
	for _, s := range calls {
		rows = append(rows, b.row(s))
	}
	return rows
}

// rank gives settled results without a rank the next ranks, in the order of their calls. The rank
// is part of the reply, so a replay gives the machine the same order. The caller holds mu while
// calls run.
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

// unstored returns the calls whose results are not in the journal, in the order in which they settled. It queues their audit records for the
// commit that stores the results.
func (b *batch) unstored() (results []*toolCall) {
	for _, s := range b.calls {
		if s.reply != nil && !s.stored {
			results = append(results, s)
			b.store.journal.audits.Add(b.caller.turnID(), s.CallID, s.decided.Ends(s.judged, &s.reply.Output))
		}
	}
	slices.SortFunc(results, func(a, b *toolCall) int { return cmp.Compare(a.reply.Order, b.reply.Order) })
	return results
}

// replies returns the results of calls, in the order of the calls. Each must have one.
func replies(calls []*toolCall) []turn.ToolReply {
	rank(calls)
	all := make([]turn.ToolReply, len(calls))
	for i, s := range calls {
		all[i] = *s.reply
	}
	return all
}
