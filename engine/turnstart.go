package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxInput is the size of an input's text and attachments together; larger things go through artifacts.
const maxInput = 4 << 20

// StartTurn makes an input durable and, unless the session is busy, starts its turn.
func (e *Engine) StartTurn(ctx context.Context, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	if err := checkInput(p.Input); err != nil {
		return nil, err
	}
	return mutate(ctx, e, p.SessionID, "turn/start", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.TurnStartResult, error) {
		if st.current != nil && p.WhenBusy == protocol.BusySteer {
			return st.steerInstead(ctx, p, rc)
		}
		if busy := len(st.turns) > 0; busy && p.WhenBusy == protocol.BusyRefuse {
			return nil, &TurnActiveError{TurnID: st.turns[0].ID}
		}
		return st.accept(ctx, p.Input, rc)
	})
}

func checkInput(parts []protocol.InputPart) error {
	if len(parts) == 0 {
		return bad("/input", "must have at least one part")
	}
	size := 0
	for i, p := range parts {
		pointer := "/input/" + itoa(i)
		switch p.Type {
		case protocol.InputText:
			if p.Text == "" {
				return bad(pointer+"/text", "must not be empty")
			}
			size += len(p.Text)
		case protocol.InputAttachment:
			if p.Attachment == nil || p.Attachment.Type == "" {
				return bad(pointer+"/attachment", "must name a media type")
			}
			size += len(p.Attachment.Data)
		default:
			return bad(pointer+"/type", "must be text or attachment, not %q", p.Type)
		}
	}
	if size > maxInput {
		return bad("/input", "has %d bytes, at most %d; write large files as artifacts", size, maxInput)
	}
	return nil
}

// accept commits a turn with its input. If the session is idle, the turn is running from that commit on.
func (st *state) accept(ctx context.Context, input []protocol.InputPart, rc receipt) (*protocol.TurnStartResult, error) {
	idle := len(st.turns) == 0
	turn := persistence.StoredTurn{Session: st.id, Turn: persistence.Turn{
		ID: protocol.NewTurnID(), State: protocol.TurnQueued, Incarnation: st.eng.incarnation, AcceptedMs: now(),
	}}
	if idle {
		turn.State, turn.StartedMs = protocol.TurnRunning, now()
	}
	in := protocol.QueuedInput{
		ID: protocol.NewInputID(), TurnID: turn.ID, State: protocol.InputQueued, Input: input, AtMs: turn.AcceptedMs,
	}
	result := &protocol.TurnStartResult{TurnID: turn.ID, InputID: in.ID, State: turn.State, Seq: st.row.Seq + 1}
	events := []logEvent{{Event: protocol.Event{
		Type: protocol.EventTurnAccepted, TurnID: turn.ID, Input: input, InputIDs: []protocol.InputID{in.ID},
	}}}
	if !idle {
		events = append(events, queueChanged(append(slices.Clone(st.inputs), in)))
	}
	c := &persistence.Commit{Receipt: rc.with(result), Turns: []persistence.Turn{turn.Turn}, Inputs: []protocol.QueuedInput{in}}
	if _, err := st.commit(ctx, c, events...); err != nil {
		return nil, err
	}
	st.turns, st.inputs = append(st.turns, turn), append(st.inputs, in)
	if idle {
		return result, st.startNext()
	}
	return result, nil
}

func queueChanged(queue []protocol.QueuedInput) logEvent {
	return logEvent{Event: protocol.Event{Type: protocol.EventQueueChanged, Queue: queue}}
}

// startNext starts the oldest turn that has not ended, if none runs. A turn that an earlier daemon drove is taken over.
func (st *state) startNext() error {
	if st.current != nil || len(st.turns) == 0 {
		return nil
	}
	turn := &st.turns[0]
	resumed := turn.State != protocol.TurnQueued && turn.Incarnation != st.eng.incarnation
	if turn.State == protocol.TurnQueued || resumed {
		next := *turn
		next.State, next.Incarnation, next.StartedMs = protocol.TurnRunning, st.eng.incarnation, now()
		if _, err := st.commit(st.ctx, &persistence.Commit{Turns: []persistence.Turn{next.Turn}}); err != nil {
			return err
		}
		*turn = next
	}
	return st.drive(*turn, resumed)
}

// drive starts the goroutine of a turn. A turn that cannot even be prepared ends with that as its outcome.
func (st *state) drive(turn persistence.StoredTurn, resumed bool) error {
	r := &run{
		session: st.session, id: turn.ID, started: time.Now(), startedMs: turn.StartedMs, acceptedMs: turn.AcceptedMs,
		cfg: st.row.Config, key: st.key, frame: st.row.Head.Frame,
	}
	ctx, cancel := context.WithCancelCause(st.ctx)
	r.cancel = cancel
	if turn.Cancel != nil {
		r.cancel(&cancelled{*turn.Cancel})
	}
	if err := st.prepare(r, resumed); err != nil {
		cancel(nil)
		return st.abandon(turn, err)
	}
	st.current = r
	st.setTurn(r)
	st.eng.countTurn(1)
	st.eng.turns.Go(func() {
		defer st.eng.countTurn(-1)
		defer cancel(nil)
		r.do(ctx)
	})
	return nil
}

func (e *Engine) countTurn(n int) {
	e.mu.Lock()
	e.active += n
	e.mu.Unlock()
}

// abandon ends a turn that could not be prepared: its input is kept as evidence, its outcome says what is wrong.
func (st *state) abandon(turn persistence.StoredTurn, cause error) error {
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	issue := protocol.Issue{Kind: "runtime", Code: "turn_not_prepared", Message: cause.Error()}
	outcome := protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: cause.Error()}
	return st.endUnstarted(st.ctx, turn, protocol.TurnFailed, outcome, []protocol.Issue{issue}, receipt{}, nil)
}

// endUnstarted ends a turn that never ran, and starts the next one.
func (st *state) endUnstarted(ctx context.Context, turn persistence.StoredTurn, state protocol.TurnState, outcome protocol.TurnOutcome,
	issues []protocol.Issue, rc receipt, result any,
) error {
	turn.State = state
	turn.Report = &protocol.TurnReport{
		TurnID: turn.ID, SessionID: st.id, State: state, Outcome: &outcome, Issues: issues, AcceptedAtMs: turn.AcceptedMs,
	}
	c := &persistence.Commit{Turns: []persistence.Turn{turn.Turn}, Retire: []protocol.TurnID{turn.ID}, Receipt: rc.with(result)}
	left := st.inputs[:0:0]
	for _, in := range st.inputs {
		if in.TurnID == turn.ID {
			in.State = protocol.InputCancelled
			c.Inputs = append(c.Inputs, in)
			continue
		}
		left = append(left, in)
	}
	done := logEvent{Event: protocol.Event{Type: protocol.EventTurnCompleted, TurnID: turn.ID, Outcome: &outcome, Issues: issues, Usage: &protocol.Usage{}}}
	if _, err := st.commit(ctx, c, done, queueChanged(left)); err != nil {
		return err
	}
	st.inputs = left
	st.turns = slices.DeleteFunc(st.turns, func(t persistence.StoredTurn) bool { return t.ID == turn.ID })
	st.eng.turnEnded.Notify()
	return st.startNext()
}
