package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// runTools runs a batch. No call runs before the fact that it is started is durable; no result is shown to the model
// before it is durable. When the turn is cancelled, each call gets its result all the same.
func (r *run) runTools(ctx context.Context, effect turn.Effect) error {
	stages, err := r.stages(effect)
	if err != nil {
		return err
	}
	r.batch = stages
	err = r.perform(ctx, stages)
	if !r.left() {
		r.afterFiles(ctx)
	}
	switch {
	case errors.As(err, new(*cancelled)):
		r.completeRest(ctx, stages)
		cancelRest(stages)
	case err != nil && r.left():
		return errors.Join(err, r.keepResults(stages))
	case err != nil:
		return err
	}
	return r.collect(ctx, effect, stages)
}

// perform brings calls to their results. After an error, some may be without.
func (r *run) perform(ctx context.Context, stages []*stage) error {
	for _, step := range []func(context.Context, []*stage) error{r.beforeCalls, r.settle, r.beforeFiles, r.start, r.dispatch} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := step(ctx, stages); err != nil {
			return err
		}
	}
	return overdue(stages)
}

// stages are the calls of a batch with what the journal knows of them.
func (r *run) stages(effect turn.Effect) ([]*stage, error) {
	stages := make([]*stage, len(effect.Tools.Calls))
	for i, call := range effect.Tools.Calls {
		stages[i] = &stage{asked: call, call: call, effect: effect.ID, ordinal: i}
		stages[i].find(r.catalog)
	}
	for _, row := range r.journal.replay[effect.ID] {
		maker, made := row.Ordinal/innerRows-1, row.Ordinal%innerRows
		switch {
		case maker >= len(stages), maker < 0 && made >= len(stages):
			return nil, &JournalError{Effect: effect.ID, Kind: "tools", Diff: fmt.Sprintf("call %d", row.Ordinal)}
		case maker >= 0:
			stages[maker].inner.know(made, row)
			continue
		}
		if err := stages[made].recall(row); err != nil {
			return nil, err
		}
	}
	return stages, nil
}

// cancelRest gives the calls without a result theirs, when the turn is cancelled.
func cancelRest(stages []*stage) {
	for _, s := range stages {
		switch {
		case s.reply != nil:
		case s.given != nil, s.began && !s.repeatable():
			s.unfinished()
		default:
			s.answer(protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn was cancelled before the call was made"})
		}
	}
}

// start makes durable that calls are about to run: those that run at once. The others are begun when it is their turn.
func (r *run) start(ctx context.Context, stages []*stage) error {
	var first []*stage
	for _, s := range stages {
		if s.reply == nil && s.entry == nil { // somebody wants it to be run again, but it is gone
			s.check(r.catalog)
		}
		if s.reply == nil && !s.entry.Terms().Serial {
			first = append(first, s)
		}
	}
	return r.begun(ctx, first...)
}

// begun makes durable that calls run now.
func (r *run) begun(ctx context.Context, stages ...*stage) error {
	var rows []persistence.Effect
	for _, s := range stages {
		if !s.waits() && s.given == nil {
			s.begin()
			rows = append(rows, r.callRow(s))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := r.flush(ctx, rows); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (r *run) callRow(s *stage) persistence.Effect { return r.effect(s, s.row()) }

func (r *run) effect(s *stage, row callRow) persistence.Effect {
	return persistence.Effect{
		Turn: r.id, ID: s.effect, Ordinal: s.ordinal, Kind: "call", Finished: row.Reply != nil, Hash: s.hash(), Body: encode(row),
	}
}

// dispatch runs the calls that have no result: all at once, except those whose tool wants to be alone. If the turn is
// left, some calls may still be without. The order in which they settle is that in which their results become durable:
// whatever is stored of a batch, nothing that settled before it is missing.
func (r *run) dispatch(ctx context.Context, stages []*stage) error {
	b := &settling{run: r, stages: stages}
	rank(stages)
	one := func(s *stage) {
		reply, ok := r.attempts(ctx, s)
		if ok && b.addResult(s, &reply) && !s.repeatable() {
			b.keep()
		}
	}
	r.files.atWork()
	var wg sync.WaitGroup
	var serial []*stage
	for _, s := range stages {
		switch {
		case s.reply != nil:
		case s.entry.Terms().Serial:
			serial = append(serial, s)
		default:
			wg.Go(func() { one(s) })
		}
	}
	wg.Wait()
	for _, s := range serial {
		if context.Cause(ctx) != nil {
			break
		}
		if err := r.begun(ctx, s); err != nil {
			return err
		}
		one(s)
	}
	return context.Cause(ctx)
}

// replies are the results of calls that all have one.
func replies(stages []*stage) []turn.ToolReply {
	rank(stages)
	all := make([]turn.ToolReply, len(stages))
	for i, s := range stages {
		all[i] = *s.reply
	}
	return all
}

// collect makes the results durable and gives them to the machine.
func (r *run) collect(ctx context.Context, effect turn.Effect, stages []*stage) error {
	if err := r.drain(ctx, stages); err != nil {
		return err
	}
	rows, err := r.keepMany(stages)
	if err != nil {
		return err
	}
	for _, s := range stages {
		r.held = append(r.held, s.messages...)
	}
	r.deliver(effect, turn.Response{Tools: replies(stages)})
	r.batch = nil
	if r.machine.Finished() {
		return nil // the turn's own commit follows at once
	}
	return r.flush(ctx, rows)
}
