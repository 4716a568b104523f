package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// stage is where one call of a batch is.
type stage struct {
	asked    protocol.ToolCall // as the model wrote it
	call     protocol.ToolCall // as it runs: a plugin may have replaced the arguments
	effect   uint64            // of the turn, that its batch is
	ordinal  int               // of its row in the journal
	entry    *tool.Entry       // nil: the catalog has no such tool any more
	grant    *tool.Grant       // that allows the call; nil: the tool is one of the catalog
	attempt  int
	replay   protocol.Replay       // that its tool declared when it was begun; empty: it was not
	approval *wanted               // a plugin wants a person to be asked
	messages []protocol.Message    // of plugins, for the next checkpoint
	reply    *turn.ToolReply       // set once the call has its result
	ranked   bool                  // the result has its place in the order of settlement
	began    bool                  // an earlier run of the daemon started it, and its result was lost
	given    *protocol.ToolOutput  // that its client gave that run of the daemon; nil: none, or it is used
	stored   bool                  // the journal has its result
	inner    inner                 // the calls that it makes itself
	wanted   []protocol.ToolIntent // by the present attempt
	intents  []intent              // by the call, until it is done
	awaited  *openDecision         // its completion, if it took a key
	parked   bool                  // it has returned and waits
	asking   int                   // how many questions the present attempt has asked
	overdue  bool                  // its completion did not come in time, and the turn is to fail
}

// callRow is the journal's row of one call: started with its attempt, then finished with its reply.
type callRow struct {
	Attempt  int                  `json:"attempt"`
	Replay   protocol.Replay      `json:"replay,omitempty"` // that its tool declared then
	Args     json.RawMessage      `json:"args,omitempty"`   // as it runs, where they are not the model's
	Given    *protocol.ToolOutput `json:"given,omitempty"`  // by its client, until there is the reply
	Reply    *turn.ToolReply      `json:"reply,omitempty"`
	Messages []protocol.Message   `json:"messages,omitempty"`
	Parked   bool                 `json:"parked,omitempty"`
	Overdue  bool                 `json:"overdue,omitempty"`
	Intents  []intent             `json:"intents,omitempty"`
}

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

// recall takes what the journal knows of a call.
func (s *stage) recall(row persistence.Effect) error {
	if !bytes.Equal(row.Hash, s.hash()) {
		return &JournalError{Effect: row.ID, Kind: "tools", Diff: fmt.Sprintf("call %d", row.Ordinal)}
	}
	var known callRow
	if err := json.Unmarshal(row.Body, &known); err != nil {
		return fmt.Errorf("journal of call %d: %w", row.Ordinal, err)
	}
	s.attempt, s.reply, s.messages, s.parked, s.overdue = known.Attempt, known.Reply, known.Messages, known.Parked, known.Overdue
	s.intents, s.given, s.replay = known.Intents, known.Given, cmp.Or(known.Replay, protocol.ReplayNever)
	if known.Args != nil {
		s.call.Args = known.Args
	}
	if s.given != nil && s.entry == nil { // the tool is gone, and with it what hooks would have to be told
		s.unfinished()
	}
	s.began, s.stored, s.ranked = !row.Finished, row.Finished, row.Finished
	return nil
}

// hash stands for the call as it was asked for, with what allows it.
func (s *stage) hash() []byte {
	text := encode(s.asked)
	if s.grant != nil {
		text = append(text, encode(s.grant)...)
	}
	return []byte(protocol.DigestOf(text))
}

// check finds the tool and validates the arguments.
func (s *stage) check(catalog *tool.Catalog) {
	s.find(catalog)
	if s.reply == nil {
		s.validate()
	}
}

// find finds the tool, before anybody is asked anything.
func (s *stage) find(catalog *tool.Catalog) {
	if s.grant != nil {
		s.allow(catalog)
		return
	}
	var ok bool
	if s.entry, ok = catalog.Lookup(s.call.Name); !ok {
		_, err := catalog.Admit(s.call.Name, s.call.Args)
		s.answer(tool.Refusal(err))
	}
}

// allow finds the tool of a grant.
func (s *stage) allow(catalog *tool.Catalog) {
	var err error
	if s.entry, err = catalog.Granted(*s.grant); err != nil {
		s.answer(tool.Refusal(err))
	}
}

func (s *stage) validate() {
	if err := s.entry.Validate(s.call.Args); err != nil {
		s.answer(tool.Refusal(err))
	}
}

// begin counts an attempt that is about to be made.
func (s *stage) begin() {
	s.attempt++
	s.replay = s.declared()
}

// declared says whether its tool lets calls be made again.
func (s *stage) declared() protocol.Replay {
	if s.entry == nil {
		return protocol.ReplayNever
	}
	return cmp.Or(s.entry.Terms().Replay, protocol.ReplayNever)
}

// repeatable tells whether a call that was started may be started again: as its tool is declared now, and was then. Another
// version of it cannot say what the one before has done.
func (s *stage) repeatable() bool {
	return repeats(s.declared()) && (s.replay == "" || repeats(s.replay))
}

func repeats(c protocol.Replay) bool {
	return c == protocol.ReplaySafe || c == protocol.ReplayIdempotent
}

func (s *stage) fail(class protocol.FailureClass, code, text string, source protocol.FailureSource) {
	s.answer(protocol.Fail(class, code, text, source))
}

func (s *stage) answer(out protocol.ToolOutput) {
	s.reply = &turn.ToolReply{CallID: s.call.CallID, Name: s.call.Name, Args: s.replaced(), Output: out}
}

// replaced are the arguments as the call runs, if they are not those of the model.
func (s *stage) replaced() json.RawMessage {
	if bytes.Equal(s.asked.Args, s.call.Args) {
		return nil
	}
	return s.call.Args
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

// unfinished gives a call its result that was started and is not brought to its end.
func (s *stage) unfinished() {
	if s.given != nil {
		s.answer(*s.given)
		s.given = nil
		return
	}
	s.settled(&protocol.DecisionAnswer{Choice: protocol.ChooseTellModel})
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
	if err := r.flush(ctx, persistence.Commit{Effects: rows}); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (r *run) callRow(s *stage) persistence.Effect { return r.effect(s, s.row()) }

// row is what the journal is to have of a call.
func (s *stage) row() callRow {
	return callRow{
		Attempt: s.attempt, Replay: s.replay, Args: s.replaced(), Given: s.given, Reply: s.reply, Messages: s.messages, Parked: s.parked,
		Overdue: s.overdue, Intents: s.intents,
	}
}

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
		if ok && b.settle(s, &reply) && !s.repeatable() {
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
	return r.flush(ctx, persistence.Commit{Effects: rows})
}
