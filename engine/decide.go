package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"lashd/engine/change"
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

// waitingDecision is a decision that its deadline answers if nobody else does.
func waitingDecision(d protocol.Decision) *openDecision {
	o := &openDecision{Decision: d, done: make(chan struct{})}
	if d.DeadlineMs > 0 {
		o.due = time.Now().Add(time.Until(time.UnixMilli(d.DeadlineMs))) // from here on it is monotonic
	}
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
	return st.resolve(st.ctx, d, protocol.DecisionAnswer{Choice: d.Default, By: "deadline", AtMs: now()}, nil)
}

// resolve makes an answer durable, with the receipt of whoever gave it; nil: nobody did. Then whoever waits goes on. The first answer
// wins: a decision is resolved once.
func (st *state) resolve(ctx context.Context, d *openDecision, answer protocol.DecisionAnswer, rc func(protocol.Seq) *persistence.Receipt) error {
	c := st.change(persistence.Commit{})
	st.decisionsIn(c).answer(c, d, answer)
	if rc != nil {
		c.Receipt = rc(c.Seq())
	}
	st.remember(c, d.Decision, &answer)
	if t, _ := st.queue.Turn(d.TurnID); t.State == protocol.TurnWaiting && d.person() && st.waitingFor(d.TurnID) == 1 {
		t.State = protocol.TurnRunning
		st.queueIn(c).SetTurn(c, t)
	}
	return st.commit(ctx, c)
}

// part names a part of a session that has a draft in a change.
type part string

const (
	partDecisions part = "decisions"
	partTasks     part = "tasks"
)

// decisionDraft is what becomes of open decisions with a change.
type decisionDraft struct {
	st       *state
	asked    []*openDecision
	answered []*openDecision
	answers  []protocol.DecisionAnswer
}

func (st *state) decisionsIn(c *change.Change) *decisionDraft {
	return change.DraftOf(c, partDecisions, func() *decisionDraft { return &decisionDraft{st: st} })
}

// ask opens a decision.
func (d *decisionDraft) ask(c *change.Change, question protocol.Decision) *openDecision {
	o := waitingDecision(question)
	d.asked = append(d.asked, o)
	c.Decisions = append(c.Decisions, question)
	c.TellOf(protocol.Event{Type: protocol.EventDecisionOpened, TurnID: question.TurnID, Decision: &question})
	return o
}

// answer answers an open decision.
func (d *decisionDraft) answer(c *change.Change, o *openDecision, a protocol.DecisionAnswer) {
	d.answered, d.answers = append(d.answered, o), append(d.answers, a)
	answered := o.Decision
	answered.Answer = &a
	c.Decisions = append(c.Decisions, answered)
	c.TellOf(protocol.Event{Type: protocol.EventDecisionResolved, TurnID: o.TurnID, Decision: &answered})
}

// turnOver answers what a turn that ends still asks: nobody needs the answer any more.
func (d *decisionDraft) turnOver(c *change.Change, id protocol.TurnID) {
	for _, o := range d.st.openDecisions() {
		if o.TurnID == id {
			d.answer(c, o, protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:turn", AtMs: now()})
		}
	}
}

// Finish implements change.Draft.
func (d *decisionDraft) Finish(*change.Change) error { return nil }

// Land implements change.Draft: whoever waits for an answer goes on.
func (d *decisionDraft) Land() {
	for _, o := range d.asked {
		d.st.decisions[o.ID] = o
	}
	for i, o := range d.answered {
		o.Answer = &d.answers[i]
		delete(d.st.decisions, o.ID)
		close(o.done)
	}
	d.st.arm()
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
		result := &protocol.DecisionRespondResult{Answer: answer, Won: true}
		return result, st.resolve(ctx, open, answer, func(seq protocol.Seq) *persistence.Receipt {
			result.Seq = seq
			return rc.with(result)
		})
	})
}

func (st *state) answered(ctx context.Context, id protocol.DecisionID) (*protocol.DecisionRespondResult, error) {
	d, err := st.answeredDecision(ctx, id)
	if err != nil {
		return nil, err
	}
	return &protocol.DecisionRespondResult{Answer: *d.Answer, Seq: st.row.Seq}, nil
}

// openDecisions are the decisions that wait, in the order in which they were opened.
func (st *state) openDecisions() []*openDecision {
	open := slices.Collect(maps.Values(st.decisions))
	slices.SortFunc(open, func(a, b *openDecision) int {
		return cmp.Or(cmp.Compare(a.OpenedAtMs, b.OpenedAtMs), cmp.Compare(a.ID, b.ID))
	})
	return open
}
