package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lashd/internal/termtext"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// What becomes of a call after a crash is decided here. Nothing that was started is made again unless its tool says that this is safe: a
// call whose result was lost becomes a decision. The others go on where they were.

// callState is how far a call has come.
type callState int

const (
	callPlanned  callState = iota // nobody has started it: plugins and people are asked first
	callStarted                   // this run of the daemon has started it
	callLost                      // an earlier run of the daemon has started it, and nobody knows what it came to
	callAnswered                  // its client has answered it, which plugins have not seen: the tool is not called
	callWaiting                   // its completion decides, which comes from elsewhere: the tool is not called
	callSettled                   // it has its result
	callStored                    // the journal has its result
)

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

// restore takes what the journal knows of a call.
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
	s.allowedPaths = known.Places
	if known.Args != nil {
		s.Args = known.Args
	}
	s.sandboxed = s.sandboxed || known.Confined
	if s.clientOutput != nil && s.entry == nil { // the tool is gone, and with it what hooks would have to be told
		s.endUnfinished()
	}
	s.resultLost, s.stored, s.ranked = !row.Finished, row.Finished, row.Finished
	return nil
}

// declaredReplay says whether its tool lets calls be made again.
func (s *toolCall) declaredReplay() protocol.Replay {
	if s.entry == nil {
		return protocol.ReplayNever
	}
	return cmp.Or(s.entry.Terms().Replay, protocol.ReplayNever)
}

// repeatable tells whether a call that was started may be started again: as its tool is declared now, and was then. Another
// version of it cannot say what the one before has done.
func (s *toolCall) repeatable() bool {
	return repeatSafe(s.declaredReplay()) && (s.replay == "" || repeatSafe(s.replay))
}

func repeatSafe(c protocol.Replay) bool {
	return c == protocol.ReplaySafe || c == protocol.ReplayIdempotent
}

// awaitsCompletion tells whether a call is not made again, because its completion decides.
func (s *toolCall) awaitsCompletion() bool { return s.awaited != nil && (s.parked || !s.repeatable()) }

// cancelRest gives the calls without a result theirs, when the turn is cancelled. Those that wait for a completion stop waiting.
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

// failRest gives the calls without a result theirs, when the turn fails.
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

// endUnfinished gives a call its result that was started and is not brought to its end.
func (s *toolCall) endUnfinished() {
	if s.clientOutput != nil {
		s.answer(*s.clientOutput)
		s.clientOutput = nil
		return
	}
	s.applyAnswer(&protocol.DecisionAnswer{Choice: protocol.ChooseTellModel})
}

// outcomeQuestion asks what became of a call whose result was lost.
func (a *asks) outcomeQuestion(call protocol.ToolCall) protocol.Decision {
	deadline := defaultDeadline
	if ms := a.judge.config.Unknown.DeadlineMs; ms != nil {
		deadline = time.Duration(*ms) * time.Millisecond
	}
	return a.decision(protocol.Decision{
		Kind: protocol.DecisionOutcome, Default: protocol.ChooseTellModel,
		Prompt: fmt.Sprintf("lashd stopped while the tool %s was running with %s. Did the call take effect?", call.Name, termtext.Brief(call.Args)),
		Choices: []protocol.DecisionChoice{
			protocol.ChooseTellModel, protocol.ChooseHappened, protocol.ChooseNotHappened, protocol.ChooseRunAgain,
		},
	}, call, deadline)
}

// applyAnswer takes a person's answer about a call.
func (s *toolCall) applyAnswer(a *protocol.DecisionAnswer) {
	switch a.Choice {
	case protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseRunAgain:
	case protocol.ChooseHappened:
		s.answer(protocol.Succeed("The call was interrupted after it started. The user says that it took effect. Its output is lost."))
	case protocol.ChooseNotHappened:
		s.fail(protocol.FailExecution, "not_executed", "The call was interrupted. The user says that it had no effect.", protocol.FromRuntime)
	case protocol.ChooseReject:
		s.fail(protocol.FailPermission, "denied", "The call was not allowed: "+rejectionReason(a)+".", protocol.FromPolicy)
	case protocol.ChooseCancelled:
		s.answer(protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn was cancelled before the call was allowed"})
	default:
		s.answer(protocol.ToolOutput{Status: protocol.OutputUnknown, Text: "The call started, then lashd was interrupted. " +
			"It is unknown whether the call took effect, and it was not run again. Check the current state before you repeat it."})
	}
}
