package engine

import (
	"slices"
	"time"

	"lashd/engine/change"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// turnResult is what a turn comes to beyond what its machine knows, and what is to be done because of that.
type turnResult struct {
	journal    *journal
	started    time.Time // when this daemon started or resumed the turn
	startedMs  int64
	acceptedMs int64
	resumed    bool // an earlier daemon started the turn

	discarded         *protocol.Issue      // why the turn does not become history; nil: it does
	issues            []protocol.Issue     // in addition to those of the machine
	answer            projection           // the answer as people see it
	captured          *captured            // plugin state for the commit
	compacts          bool                 // compact history before the next turn
	eventsAfterCommit []change.Event       // stored by a commit after the one that ends the turn
	report            *protocol.TurnReport // as stored; nil: not stored yet
}

// result is what the turn came to. If somebody wanted it cancelled before it is stored, then that is how it ended,
// however far it came: of the two, whoever was stored first wins.
func (t *turnResult) result(cancel *protocol.CancelEvidence) turn.Result {
	res := t.journal.result()
	res.Issues = append(slices.Clip(res.Issues), t.issues...)
	switch {
	case t.discarded != nil:
		res.Messages, res.ToolCalls = nil, nil
		fail(&res, *t.discarded)
	case cancel != nil && res.Outcome.Kind != protocol.OutcomeCancelled:
		res.Outcome = &protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: cancel}
	}
	return res
}

func fail(res *turn.Result, issue protocol.Issue) {
	res.Issues = append(slices.Clip(res.Issues), issue)
	res.Outcome = &protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: issue.Message}
}

// note adds issues to those of the machine.
func (t *turnResult) note(issues ...protocol.Issue) { t.issues = append(t.issues, issues...) }

// reportOf is the report of a result, with the revision that the head has then.
func (t *turnResult) reportOf(result turn.Result, revision int64) *protocol.TurnReport {
	took := time.Since(t.started)
	if t.resumed {
		took = max(0, time.Since(time.UnixMilli(t.startedMs)))
	}
	return &protocol.TurnReport{
		TurnID: t.journal.turn, SessionID: t.journal.session, State: stateOf(*result.Outcome), Outcome: result.Outcome, Usage: result.Usage,
		Calls: result.Calls, ToolCalls: result.ToolCalls, Issues: result.Issues, HadTools: len(result.ToolCalls) > 0,
		HadCode: result.HadCode, AcceptedAtMs: t.acceptedMs, StartedAtMs: t.startedMs, DurationMs: took.Milliseconds(),
		HeadRevision: revision, Output: t.output(result),
	}
}

// compactsHistory reports whether history is compacted before the next turn.
func (t *turnResult) compactsHistory() bool { return t.compacts && t.discarded == nil }

// kept is what plugins keep of the turn. What cannot be stored with it may be that; what the code executor keeps is of the
// frame that the turn was in.
func (t *turnResult) stateToStore(left bool) *captured {
	switch {
	case t.discarded != nil:
		t.captured = nil
	case t.captured != nil && left:
		k := *t.captured
		k.execution = nil
		return &k
	}
	return t.captured
}

func stateOf(o protocol.TurnOutcome) protocol.TurnState {
	switch {
	case o.Kind == protocol.OutcomeCancelled:
		return protocol.TurnCancelled
	case o.Finished():
		return protocol.TurnCompleted
	}
	return protocol.TurnFailed
}

// output is the text of the turn's last assistant message.
func (t *turnResult) output(result turn.Result) *protocol.AssistantOutput {
	out := &protocol.AssistantOutput{State: protocol.OutputEmpty, Safe: answerOf(result)}
	if p := t.answer; p.raw == out.Safe && p.safe != p.raw {
		out.Safe, out.Raw = p.safe, p.raw
	}
	switch {
	case out.Safe == "":
	case result.Outcome.Finished():
		out.State = protocol.OutputUsable
	default:
		out.State = protocol.OutputRecovered
	}
	return out
}

// answerOf is the text of a turn's last assistant message, as the model has said it.
func answerOf(result turn.Result) string {
	for i := len(result.Messages) - 1; i >= 0; i-- {
		if m := &result.Messages[i]; m.Role == protocol.RoleAssistant {
			return m.Answer()
		}
	}
	return ""
}

// projection is an answer as a person should see it.
type projection struct{ raw, safe string }
