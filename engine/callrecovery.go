package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lashd/engine/approval"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// This file decides how a call continues after a crash. A call that started and has no stored result runs again only if its
// tool is marked safe to repeat; otherwise it becomes a decision. All other calls resume where they were.

// callState is how far a tool call has progressed. toolCall.state derives it from the fields of the
// call, so that a call read from the journal resumes where it was.
type callState int

const (
	// callPlanned calls have not started: hooks and approval come next.
	callPlanned callState = iota
	// callStarted calls were started by this run of the daemon.
	callStarted
	// callLost calls were started by an earlier run of the daemon, and their outcome is unknown.
	callLost
	// callAnswered calls have an output from their client that hooks have not seen. The tool is not
	// called.
	callAnswered
	// callWaiting calls wait for a completion from outside. The tool is not called.
	callWaiting
	// callSettled calls have their result.
	callSettled
	// callStored calls have their result in the journal.
	callStored
)

// state returns how far the call has progressed. The most advanced state wins.
func (s *toolCall) state() callState {
	switch {
	case s.stored:
		return callStored
	case s.reply != nil:
		return callSettled
	case s.clientOutput != nil:
		return callAnswered
	case s.awaitsCompletion():
		return callWaiting
	case s.resultLost:
		return callLost
	case s.attempt > 0:
		return callStarted
	}
	return callPlanned
}

// restore fills the call from its row of the journal. It returns a JournalError if the row belongs
// to another call: the driver or the model reply must have changed.
func (s *toolCall) restore(row persistence.Effect) error {
	if !bytes.Equal(row.Hash, s.hash()) {
		return &JournalError{Effect: row.ID, Kind: "tools", Diff: fmt.Sprintf("call %d", row.Ordinal)}
	}
	var known callRow
	if err := json.Unmarshal(row.Body, &known); err != nil {
		return fmt.Errorf("journal of call %d: %w", row.Ordinal, err)
	}
	s.attempt, s.reply, s.messages, s.parked, s.overdue = known.Attempt, known.Reply, known.Messages, known.Parked, known.Overdue
	s.intents, s.clientOutput, s.replay = known.Intents, known.ClientOutput, cmp.Or(known.Replay, protocol.ReplayNever)
	s.allowed = allowance{paths: known.Places, sandbox: known.Sandbox, network: known.Network, change: known.Change}
	s.decided.Earlier = known.Decision
	if known.Args != nil {
		s.Args = known.Args
	}
	s.sandboxed = s.sandboxed || known.Confined
	if s.clientOutput != nil && s.entry == nil { // without the tool, hooks cannot be asked about its output
		s.endUnfinished()
	}
	s.resultLost, s.stored, s.ranked = !row.Finished, row.Finished, row.Finished
	return nil
}

// declaredReplay returns what the tool declares now about repeating calls. A tool that is gone
// counts as never repeatable.
func (s *toolCall) declaredReplay() protocol.Replay {
	if s.entry == nil {
		return protocol.ReplayNever
	}
	return cmp.Or(s.entry.Terms().Replay, protocol.ReplayNever)
}

// repeatable reports whether a started call may be started again. Its tool must allow that now and
// must have allowed it then: another version cannot know what the previous one did.
func (s *toolCall) repeatable() bool {
	return repeatSafe(s.declaredReplay()) && (s.replay == "" || repeatSafe(s.replay))
}

// repeatSafe reports whether a replay declaration allows a call to run twice.
func repeatSafe(c protocol.Replay) bool {
	return c == protocol.ReplaySafe || c == protocol.ReplayIdempotent
}

// awaitsCompletion reports whether the call ends with its completion instead of another attempt.
// The call has either returned, or must not be repeated.
func (s *toolCall) awaitsCompletion() bool { return s.awaited != nil && (s.parked || !s.repeatable()) }

// cancelRest gives every call without a result its final result when the turn is cancelled. Calls
// that wait for a completion stop waiting first.
func (b *batch) cancelRest(ctx context.Context) {
	b.asks.completeRest(ctx, b.calls)
	for _, s := range b.calls {
		switch {
		case s.reply != nil:
		case s.clientOutput != nil, s.resultLost && !s.repeatable():
			s.endUnfinished()
		default:
			s.answer(protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn was cancelled before the call started"})
		}
	}
}

// failRest gives every call without a result its final result when the turn fails.
func (b *batch) failRest() {
	for _, s := range b.calls {
		switch s.state() {
		case callSettled, callStored:
		case callPlanned:
			s.answer(protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn failed before the call started"})
		default:
			s.endUnfinished()
		}
	}
}

// endUnfinished gives a started call that will not finish its result: the output that its client
// sent, or "unknown".
func (s *toolCall) endUnfinished() {
	if s.clientOutput != nil {
		s.answer(*s.clientOutput)
		s.clientOutput = nil
		return
	}
	s.applyAnswer(&protocol.DecisionAnswer{Choice: protocol.ChooseTellModel})
}

// outcomeQuestion returns the decision that asks a person whether an interrupted call took effect.
// Its default, at the deadline, is to tell the model that the outcome is unknown.
func (a *asks) outcomeQuestion(call protocol.ToolCall) protocol.Decision {
	deadline := defaultDeadline
	if ms := a.judge.config.Unknown.DeadlineMs; ms != nil {
		deadline = time.Duration(*ms) * time.Millisecond
	}
	return a.decision(approval.OutcomeQuestion(call), call, deadline)
}

// applyAnswer applies a person's answer to the call. After an answer that allows it, or that asks
// to run it again, the call has no result yet and can start. All other answers end it with a
// result.
func (s *toolCall) applyAnswer(a *protocol.DecisionAnswer) {
	s.decided.Answer = a
	if out := approval.Result(a); out != nil {
		s.answer(*out)
	}
}
