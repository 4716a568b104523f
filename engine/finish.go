package engine

import (
	"context"
	"errors"
	"time"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// spaceCheck is how often a turn that could not be stored for want of space or a lock is tried again.
const spaceCheck = time.Second

// finish commits the turn. Until it is stored it is not over: want of space delays it, nothing else may.
func (r *run) finish(ctx context.Context) {
	for {
		err := r.complete(ctx)
		switch {
		case err == nil:
			return
		case errors.Is(err, persistence.ErrFull), errors.Is(err, persistence.ErrBusy):
			r.eng.Log.Error("turn waits to be stored", "turn", r.id, "error", err)
		case errors.Is(err, persistence.ErrBudget):
			r.eng.Log.Error("turn is too large to be stored", "turn", r.id, "error", err)
			r.discard(err)
			continue
		default:
			r.eng.Log.Error("turn was not stored", "turn", r.id, "error", err)
			return
		}
		select {
		case <-time.After(spaceCheck):
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errStopped) {
				return
			}
			time.Sleep(spaceCheck)
		}
	}
}

// discard gives up what the turn came to: its outcome says so, and its items are withdrawn.
func (r *run) discard(cause error) {
	r.machine = turn.New(r.plugins.Driver(), turn.Config{})
	r.machine.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Kind: "store", Code: "turn_not_finalised", Message: cause.Error()})
	r.recorded = 0
}

func (r *run) complete(ctx context.Context) error {
	_, err := do(context.WithoutCancel(ctx), r.eng, r.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.complete(ctx, r)
	})
	return err
}

// complete is the commit of a turn: its nodes, what is said of them, its report, its usage, and what becomes of inputs.
func (st *state) complete(ctx context.Context, r *run) error {
	result := r.machine.Result()
	stored, ok := st.openTurn(r.id)
	if !ok {
		return ErrTurnNotActive
	}
	report := r.report(result)
	total, err := st.row.Usage.Add(result.Usage)
	if err != nil {
		total = st.row.Usage
		report.Issues = append(report.Issues, protocol.Issue{Kind: "runtime", Code: "token_usage_overflow", Message: err.Error()})
	}
	report.HeadRevision = st.row.Head.Revision + 1
	stored.State, stored.Report = report.State, report
	emitted, recorded := r.emitted, r.recorded
	discarded := len(r.nodes) > len(result.Messages)
	events := r.closing(result, discarded)
	c := &persistence.Commit{
		Turns: []persistence.Turn{stored.Turn}, Retire: []protocol.TurnID{r.id}, Usage: r.ledger(result), Turned: true, Total: &total,
		Fence: persistence.Fence{Turn: r.id, Incarnation: st.eng.incarnation},
	}
	if !discarded {
		c.Nodes = r.nodes
	}
	inputs, turns := st.settleInputs(c, r.id)
	closed, resolved := st.closeDecisions(c, r.id)
	events = append(events, resolved...)
	events = append(events,
		logEvent{Event: protocol.Event{Type: protocol.EventUsageUpdated, TurnID: r.id, Usage: &result.Usage, Total: &total}},
		logEvent{Event: protocol.Event{Type: protocol.EventTurnCompleted, TurnID: r.id, Outcome: result.Outcome, Usage: &result.Usage, Issues: report.Issues}})
	events = append(events, deferredEvents(c, inputs)...)
	before := st.row.Head.Leaf
	done, err := st.commit(ctx, c, events...)
	if err != nil {
		r.emitted, r.recorded = emitted, recorded
		return err
	}
	st.row.Usage, st.inputs, st.turns = total, inputs, turns
	st.row.TurnIndex++
	st.grow(before, done.Nodes)
	r.feed.end(r.streamed, false)
	for _, d := range closed {
		d.stop()
		delete(st.decisions, d.ID)
	}
	st.current = nil
	st.setTurn(nil)
	r.trace("turn_completed", report)
	st.eng.turnEnded.Notify()
	return st.startNext()
}

// closing are the last news of a turn, or, if it is given up, the withdrawal of all it said.
func (r *run) closing(result turn.Result, discarded bool) []logEvent {
	if !discarded {
		return r.news()
	}
	var events []logEvent
	for i := range r.nodes[:r.emitted] {
		for _, e := range r.itemEvents(&r.nodes[i]) {
			events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventItemRetracted, TurnID: r.id, ItemID: e.ItemID}})
		}
	}
	return events
}

func (r *run) report(result turn.Result) *protocol.TurnReport {
	rep := &protocol.TurnReport{
		TurnID: r.id, SessionID: r.session.id, State: stateOf(*result.Outcome), Outcome: result.Outcome, Usage: result.Usage,
		Calls: result.Calls, ToolCalls: result.ToolCalls, Issues: result.Issues, HadTools: len(result.ToolCalls) > 0,
		HadCode: result.HadCode, AcceptedAtMs: r.acceptedMs, StartedAtMs: r.startedMs, DurationMs: time.Since(r.started).Milliseconds(),
	}
	rep.Output = r.output(result)
	return rep
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
	out := &protocol.AssistantOutput{State: protocol.OutputEmpty}
	for i := len(result.Messages) - 1; i >= 0; i-- {
		m := &result.Messages[i]
		if m.Role != protocol.RoleAssistant {
			continue
		}
		raw := m.Text(protocol.PartProse)
		out.Safe = r.plugins.Driver().Visible(raw)
		if out.Safe != raw {
			out.Raw = raw
		}
		break
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

func (r *run) ledger(result turn.Result) []persistence.Usage {
	rows := make([]persistence.Usage, len(result.Calls))
	for i, call := range result.Calls {
		row := protocol.UsageRow{Source: "turn", Model: call.Model, Calls: 1}
		if call.Usage != nil {
			row.Usage = *call.Usage
		} else {
			row.Unknown = 1
		}
		rows[i] = persistence.Usage{Operation: string(r.id), Ordinal: i, Row: row}
	}
	return rows
}

// settleInputs says what becomes of the inputs when a turn ends: what it took in is completed, and what was steered at
// it too late goes to the next turn, which is made if there is none.
func (st *state) settleInputs(c *persistence.Commit, id protocol.TurnID) ([]protocol.QueuedInput, []persistence.StoredTurn) {
	var turns []persistence.StoredTurn
	for _, t := range st.turns {
		if t.ID != id {
			turns = append(turns, t)
		}
	}
	var left []protocol.QueuedInput
	for _, in := range st.inputs {
		switch {
		case in.TurnID != id:
			left = append(left, in)
			continue
		case in.State == protocol.InputPendingActive:
			if len(turns) == 0 {
				turns = append(turns, st.newTurn())
				c.Turns = append(c.Turns, turns[0].Turn)
			}
			in.State, in.TurnID = protocol.InputDeferred, turns[0].ID
			left = append(left, in)
		default:
			in.State = protocol.InputCompleted
		}
		c.Inputs = append(c.Inputs, in)
	}
	return left, turns
}

func (st *state) newTurn() persistence.StoredTurn {
	return persistence.StoredTurn{Session: st.id, Turn: persistence.Turn{
		ID: protocol.NewTurnID(), State: protocol.TurnQueued, Incarnation: st.eng.incarnation, AcceptedMs: now(),
	}}
}

// deferredEvents tell of a turn that was made for inputs which came too late for the one that ended.
func deferredEvents(c *persistence.Commit, inputs []protocol.QueuedInput) []logEvent {
	var events []logEvent
	for _, t := range c.Turns[1:] {
		e := protocol.Event{Type: protocol.EventTurnAccepted, TurnID: t.ID}
		for _, in := range inputs {
			if in.TurnID == t.ID {
				e.Input, e.InputIDs = append(e.Input, in.Input...), append(e.InputIDs, in.ID)
			}
		}
		events = append(events, logEvent{Event: e})
	}
	if len(c.Inputs) > 0 && (len(inputs) > 0 || len(c.Inputs) > 1) {
		events = append(events, queueChanged(inputs))
	}
	return events
}
