package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// defaultDeadline is how long a question stays open, unless the session says otherwise.
const defaultDeadline = 10 * time.Minute

// openDecision is a question that waits, and whoever waits for its answer.
type openDecision struct {
	protocol.Decision
	done chan struct{} // closed once Answer is set
	due  time.Time     // when its deadline answers it; zero: never
}

// watch keeps an open decision in memory and lets its deadline answer it.
func (st *state) watch(d protocol.Decision) *openDecision {
	o := &openDecision{Decision: d, done: make(chan struct{})}
	if d.DeadlineMs > 0 {
		o.due = time.Now().Add(time.Until(time.UnixMilli(d.DeadlineMs))) // from here on it is monotonic
	}
	st.decisions[d.ID] = o
	st.arm()
	return o
}

// answeredDecision is a decision that has its answer in the store.
func (st *state) answeredDecision(ctx context.Context, id protocol.DecisionID) (*openDecision, error) {
	d, err := st.eng.store.Decision(ctx, id)
	if err == nil && d.Answer == nil {
		err = fmt.Errorf("decision %s is open in the store only: %w", id, persistence.ErrFenced)
		st.broken = err
	}
	if err != nil {
		return nil, err
	}
	o := &openDecision{Decision: d, done: make(chan struct{})}
	close(o.done)
	return o, nil
}

func (st *state) expire(d *openDecision) error {
	return st.resolve(st.ctx, d, protocol.DecisionAnswer{Choice: d.Default, By: "deadline", AtMs: now()}, receipt{}, nil)
}

// resolve makes an answer durable, then lets whoever waits go on. The first answer wins: a decision is resolved once.
func (st *state) resolve(ctx context.Context, d *openDecision, answer protocol.DecisionAnswer, rc receipt, result any) error {
	answered := d.Decision
	answered.Answer = &answer
	c := &persistence.Commit{Decisions: []protocol.Decision{answered}, Receipt: rc.with(result)}
	approved := st.remember(c, answered, answer.By)
	if t, ok := st.openTurn(d.TurnID); ok && t.State == protocol.TurnWaiting && d.person() && st.waitingFor(d.TurnID) == 1 {
		t.State = protocol.TurnRunning
		c.Turns = []persistence.Turn{t.Turn}
	}
	event := logEvent{Event: protocol.Event{Type: protocol.EventDecisionResolved, TurnID: d.TurnID, Decision: &answered}}
	if _, err := st.commit(ctx, c, event); err != nil {
		return err
	}
	st.approved = approved
	for _, t := range c.Turns {
		st.setTurnState(t.ID, t.State)
	}
	d.Answer = &answer
	st.forget([]*openDecision{d})
	return nil
}

// forget drops decisions that have their answer, and lets whoever waits for it go on.
func (st *state) forget(answered []*openDecision) {
	for _, d := range answered {
		if d.Answer == nil {
			d.Answer = &protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:turn", AtMs: now()}
		}
		delete(st.decisions, d.ID)
		close(d.done)
	}
	st.arm()
}

func (d *openDecision) person() bool { return forPerson(d.Decision) }

// waitingFor counts what a turn waits to be told by a person.
func (st *state) waitingFor(id protocol.TurnID) int {
	n := 0
	for _, d := range st.decisions {
		if d.TurnID == id && d.person() {
			n++
		}
	}
	return n
}

func (st *state) openTurn(id protocol.TurnID) (persistence.StoredTurn, bool) {
	i := slices.IndexFunc(st.turns, func(t persistence.StoredTurn) bool { return t.ID == id })
	if i < 0 {
		return persistence.StoredTurn{}, false
	}
	return st.turns[i], true
}

func (st *state) setTurnState(id protocol.TurnID, s protocol.TurnState) {
	for i := range st.turns {
		if st.turns[i].ID == id {
			st.turns[i].State = s
		}
	}
}

// Respond answers a decision. The answer that came first counts, whoever gave it.
func (e *Engine) Respond(ctx context.Context, client protocol.ClientID, p *protocol.DecisionRespondParams) (*protocol.DecisionRespondResult, error) {
	d, err := e.store.Decision(ctx, p.DecisionID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, e, d.SessionID, "decision/respond", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.DecisionRespondResult, error) {
		open, ok := st.decisions[p.DecisionID]
		if !ok {
			return st.answered(ctx, p.DecisionID)
		}
		if !open.person() {
			return nil, bad("/decisionId", "is of a call that tool/complete completes")
		}
		if !slices.Contains(open.Choices, p.Choice) {
			return nil, notOneOf("/choice", open.Choices)
		}
		if open.Kind == protocol.DecisionApproval && p.Choice != protocol.ChooseReject && p.ArgsHash != open.ArgsHash {
			return nil, bad("/argsHash", "must be the decision's argsHash, as an approval is good for exactly those arguments; decision/list shows it")
		}
		if err := tool.CheckValue(open.Form, p.Value); err != nil && p.Choice == protocol.ChooseAnswer {
			return nil, bad("/value", "does not fit the decision's form: %v", err)
		}
		answer := protocol.DecisionAnswer{Choice: p.Choice, Value: p.Value, By: string(client), AtMs: now()}
		result := &protocol.DecisionRespondResult{Answer: answer, Won: true, Seq: st.row.Seq + 1}
		return result, st.resolve(ctx, open, answer, rc, result)
	})
}

func (st *state) answered(ctx context.Context, id protocol.DecisionID) (*protocol.DecisionRespondResult, error) {
	d, err := st.answeredDecision(ctx, id)
	if err != nil {
		return nil, err
	}
	return &protocol.DecisionRespondResult{Answer: *d.Answer, Seq: st.row.Seq}, nil
}

// closeDecisions settles what a turn that ends still asks: nobody needs the answer any more.
func (st *state) closeDecisions(c *persistence.Commit, id protocol.TurnID) (closed []*openDecision, events []logEvent) {
	for _, d := range st.openDecisions() {
		if d.TurnID != id {
			continue
		}
		answered := d.Decision
		answered.Answer = &protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:turn", AtMs: now()}
		c.Decisions = append(c.Decisions, answered)
		events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventDecisionResolved, TurnID: id, Decision: &answered}})
		closed = append(closed, d)
	}
	return closed, events
}

// openDecisions are the decisions that wait, in the order in which they were opened.
func (st *state) openDecisions() []*openDecision {
	open := slices.Collect(maps.Values(st.decisions))
	slices.SortFunc(open, func(a, b *openDecision) int {
		return cmp.Or(cmp.Compare(a.OpenedAtMs, b.OpenedAtMs), cmp.Compare(a.ID, b.ID))
	})
	return open
}
