package engine

import (
	"slices"
	"time"

	"lashd/engine/change"
	"lashd/engine/pluginstate"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// turnResult collects the outcome of a turn beyond what its machine knows: issues, captured state,
// the filtered answer and what has to follow the commit. It belongs to the turn's goroutine, and to
// the actor while that goroutine waits.
type turnResult struct {
	journal    *journal
	started    time.Time // when this daemon started or resumed the turn
	startedMs  int64
	acceptedMs int64
	resumed    bool // an earlier daemon started the turn

	discarded         *protocol.Issue       // why the turn does not become history; nil: it does
	issues            []protocol.Issue      // in addition to those of the machine
	answer            projection            // the answer as people see it
	captured          *pluginstate.Captured // plugin state for the commit
	compacts          bool                  // compact history before the next turn
	eventsAfterCommit []change.Event        // stored by a commit after the one that ends the turn
	report            *protocol.TurnReport  // as stored; nil: not stored yet
}

// result returns the turn's final result. A cancellation that was stored before the turn's end
// wins, even if the turn had finished its work: of the two, the first stored counts.
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

// fail turns a result into a runtime error with an issue.
func fail(res *turn.Result, issue protocol.Issue) {
	res.Issues = append(slices.Clip(res.Issues), issue)
	res.Outcome = &protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: issue.Message}
}

// note adds issues to the turn's report.
func (t *turnResult) note(issues ...protocol.Issue) { t.issues = append(t.issues, issues...) }

// reportOf builds the turn's report. revision is that of the head after the turn. The duration
// includes the time before a restart.
func (t *turnResult) reportOf(result turn.Result, revision int64) *protocol.TurnReport {
	took := time.Since(t.started)
	if t.resumed {
		took = max(0, time.Since(time.UnixMilli(t.startedMs)))
	}
	return &protocol.TurnReport{
		TurnID: t.journal.turn, SessionID: t.journal.session, State: result.Outcome.State(), Outcome: result.Outcome, Usage: result.Usage,
		Calls: result.Calls, ToolCalls: result.ToolCalls, Issues: result.Issues, HadTools: len(result.ToolCalls) > 0,
		HadCode: result.HadCode, AcceptedAtMs: t.acceptedMs, StartedAtMs: t.startedMs, DurationMs: took.Milliseconds(),
		HeadRevision: revision, Output: t.output(result),
	}
}

// compactsHistory reports whether history is compacted before the next turn. A discarded turn adds
// nothing, so it causes no compaction.
func (t *turnResult) compactsHistory() bool { return t.compacts && t.discarded == nil }

// stateToStore returns the plugin state for the commit that ends the turn. It returns none for a
// discarded turn, because the state may be the part that cannot be stored. A turn that leaves its
// frame drops the executor's state, which belongs to the frame.
func (t *turnResult) stateToStore(left bool) *pluginstate.Captured {
	switch {
	case t.discarded != nil:
		t.captured = nil
	case t.captured != nil && left:
		k := *t.captured
		k.Execution = nil
		return &k
	}
	return t.captured
}

// output returns the text of the turn's last assistant message as people see it, and the raw text
// if plugins changed it.
func (t *turnResult) output(result turn.Result) *protocol.AssistantOutput {
	out := &protocol.AssistantOutput{State: protocol.OutputEmpty, Safe: result.Answer()}
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

// projection is an answer before and after plugins changed it for people.
type projection struct{ raw, safe string }
