package engine

import (
	"slices"
	"time"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

type resultOf = turn.Result

// result is what the turn came to. If somebody wanted it cancelled before it is stored, then that is how it ended,
// however far it came: of the two, whoever was stored first wins.
func (r *run) result(cancel *protocol.CancelEvidence) turn.Result {
	res := r.machine.Result()
	res.Issues = append(slices.Clip(res.Issues), r.issues...)
	switch {
	case r.given != nil:
		res.Messages, res.ToolCalls = nil, nil
		fail(&res, r.given.issue)
	case cancel != nil && res.Outcome.Kind != protocol.OutcomeCancelled:
		res.Outcome = &protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: cancel}
	}
	return res
}

func fail(res *turn.Result, issue protocol.Issue) {
	res.Issues = append(slices.Clip(res.Issues), issue)
	res.Outcome = &protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: issue.Message}
}

func (r *run) report(result turn.Result, revision int64) *protocol.TurnReport {
	took := time.Since(r.started)
	if r.resumed {
		took = max(0, time.Since(time.UnixMilli(r.startedMs)))
	}
	return &protocol.TurnReport{
		TurnID: r.id, SessionID: r.session.id, State: stateOf(*result.Outcome), Outcome: result.Outcome, Usage: result.Usage,
		Calls: result.Calls, ToolCalls: result.ToolCalls, Issues: result.Issues, HadTools: len(result.ToolCalls) > 0,
		HadCode: result.HadCode, AcceptedAtMs: r.acceptedMs, StartedAtMs: r.startedMs, DurationMs: took.Milliseconds(),
		HeadRevision: revision, Output: r.output(result),
	}
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
func (r *run) output(result turn.Result) *protocol.AssistantOutput {
	out := &protocol.AssistantOutput{State: protocol.OutputEmpty, Safe: answerOf(result)}
	if p := r.legible; p.raw == out.Safe && p.safe != p.raw {
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

// project makes the turn's answer what a person should see. Reports take it from here: who makes the last one is the actor, which
// asks no plugins.
func (r *run) project() {
	raw := answerOf(r.machine.Result())
	r.legible = projection{raw, r.visible(raw)}
}

// visible is prose as a person should see it; as it is, if the driver panics over it.
func (r *run) visible(raw string) (safe string) {
	if raw == "" || r.plugins == nil {
		return raw
	}
	defer func() {
		if p := recover(); p != nil {
			r.eng.panicked("turn", r.id, p)
			safe = raw
		}
	}()
	safe, err := r.plugins.Prose(r.life, r.plugins.Driver().Visible(raw))
	if err != nil && !r.left() {
		r.unprojected(err)
		r.issues = append(r.issues, (&hookFailure{"plugin_prose", err}).issue())
	}
	return safe
}

// unprojected tells that text is shown with what a plugin would have hidden.
func (r *run) unprojected(err error) {
	r.eng.blame(err)
	r.eng.Log.Warn("a plugin failed to make text readable", "session", r.session.id, "turn", r.id, "error", err)
}

// ledger has a row for each model call after the first ones. A call that may have been made twice, because the daemon died during it, is
// counted twice, the first time with tokens that nobody knows.
func (r *run) ledger(result turn.Result, first int) []persistence.Usage {
	var rows []persistence.Usage
	for i := first; i < len(result.Calls); i++ {
		call := &result.Calls[i]
		row := protocol.UsageRow{Source: "turn", Model: call.Model, Calls: 1}
		if call.Usage != nil {
			row.Usage = *call.Usage
		} else {
			row.Unknown = 1
		}
		for _, a := range call.Attempts {
			if a.Outcome == protocol.AttemptInterrupted {
				row.Calls++
				row.Unknown++
			}
		}
		rows = append(rows, persistence.Usage{Operation: string(r.id), Ordinal: i, Row: row})
	}
	return rows
}
