package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lashd/engine/approval"
	"lashd/engine/decision"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Decisions is the API of decisions: clients list open ones and answer them. Its methods are safe
// for concurrent use.
type Decisions struct{ eng *Engine }

// sessionDecisions is the part of a session's state that holds its open decisions and its standing
// approvals, which are answers that also cover later calls. It belongs to the actor. From the state
// it uses changes and their commits, the session's row, and the queue, to mark a turn as running
// again.
type sessionDecisions struct {
	// Book has the open decisions, with the calls that wait for them.
	*decision.Book
	// standing has the approvals given for the session. Those for a workspace are in the store.
	standing approval.Standing
	st       *state
}

// load reads the open decisions of a session. loadComponents has already read the standing
// approvals.
func (ds *sessionDecisions) load(st *state) error {
	open, err := st.eng.store.OpenDecisions(st.ctx, st.key)
	ds.Book, ds.st = decision.New(open), st
	return err
}

// list returns the open decisions as clients see them; never nil.
func (ds *sessionDecisions) list() []protocol.Decision {
	open := []protocol.Decision{}
	for _, d := range ds.All() {
		open = append(open, d.Decision)
	}
	return open
}

// standingFor returns the standing answers that apply to calls under these policies: the session's
// own, and those that the store has for the workspaces of the policies.
func (ds *sessionDecisions) standingFor(ctx context.Context, policies []approval.Policy) (approval.Answers, error) {
	return ds.standing.For(ctx, ds.st.eng.store, policies)
}

// fetchAnswered reads a decision that is not open in memory, and so must have its answer in the
// store. If it has none there, another daemon wrote to the store, and the state is broken.
func (ds *sessionDecisions) fetchAnswered(ctx context.Context, id protocol.DecisionID) (*decision.Open, error) {
	d, err := ds.st.eng.store.Decision(ctx, id)
	if err == nil && d.Answer == nil {
		err = fmt.Errorf("decision %s is open in the store but not in memory: %w", id, persistence.ErrFenced)
		ds.st.broken = err
	}
	if err != nil {
		return nil, err
	}
	return decision.Answered(d), nil
}

// resolve commits the answer to an open decision and wakes the call that waits for it. It also
// remembers a standing answer, and marks the turn as running when its last question is answered. rc
// adds the receipt of the request that answered; nil if no request did. The caller has checked that
// the decision is open.
func (ds *sessionDecisions) resolve(ctx context.Context, o *decision.Open, answer protocol.DecisionAnswer, rc func(protocol.Seq) *persistence.Receipt, blobs ...persistence.Blob) error {
	st := ds.st
	c := st.change(persistence.Commit{Blobs: blobs})
	ds.Answer(c, o, answer)
	if rc != nil {
		c.Receipt = rc(c.Seq())
	}
	ds.standing.Remember(c, o.Decision, &answer, st.row.Cwd, st.row.Authority.Ceiling != nil)
	if t, _ := st.queue.Turn(o.TurnID); t.State == protocol.TurnWaiting && o.ForPerson() && ds.AskedBy(o.TurnID) == 1 {
		t.State = protocol.TurnRunning
		st.queue.In(c).SetTurn(c, t)
	}
	c.Then(func() { st.eng.rules.Apply(c.Approve) })
	return st.commit(ctx, c)
}

// Respond answers a decision. The first answer wins, whichever client sends it; Won is false for
// the others, which get that first answer. An answer that allows a call must repeat the hash of the
// arguments that the person saw.
func (ds *Decisions) Respond(ctx context.Context, client protocol.ClientID, p *protocol.DecisionRespondParams) (*protocol.DecisionRespondResult, error) {
	d, err := ds.eng.store.Decision(ctx, p.DecisionID)
	if err != nil {
		return nil, err
	}
	changed, err := ds.changes(ctx, d.SessionID, p)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, ds.eng, d.SessionID, "decision/respond", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.DecisionRespondResult, error) {
		open := st.decisions.Find(p.DecisionID)
		if open == nil {
			return st.decisions.firstAnswer(ctx, p.DecisionID)
		}
		if err := param.CheckAnswer(&open.Decision, p); err != nil {
			return nil, err
		}
		answer := protocol.DecisionAnswer{
			Choice: p.Choice, Value: p.Value, Args: changed.Args, Places: changed.Places, Hunks: p.Hunks, Width: p.Width, Reason: p.Reason, By: string(client), AtMs: now(),
		}
		result := &protocol.DecisionRespondResult{Answer: answer, Won: true}
		return result, st.decisions.resolve(ctx, open, answer, func(seq protocol.Seq) *persistence.Receipt {
			result.Seq = seq
			return rc.With(result)
		})
	})
}

// firstAnswer returns the stored answer of a decision to a client that answered too late.
func (ds *sessionDecisions) firstAnswer(ctx context.Context, id protocol.DecisionID) (*protocol.DecisionRespondResult, error) {
	d, err := ds.fetchAnswered(ctx, id)
	if err != nil {
		return nil, err
	}
	return &protocol.DecisionRespondResult{Answer: *d.Answer, Seq: ds.st.row.Seq}, nil
}

// List returns the open decisions of a session and its subagents, or of all sessions if the request
// names none.
func (ds *Decisions) List(ctx context.Context, p *protocol.DecisionListParams) (*protocol.DecisionListResult, error) {
	open, err := ds.openOf(ctx, p.SessionID)
	return &protocol.DecisionListResult{Data: decision.CountDown(list(open), time.Now())}, err
}

// openOf reads open decisions from the store, without loading sessions.
func (ds *Decisions) openOf(ctx context.Context, id protocol.SessionID) ([]protocol.Decision, error) {
	if id == "" {
		return ds.eng.store.OpenDecisions(ctx, 0)
	}
	row, err := ds.eng.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	return ds.eng.store.FamilyDecisions(ctx, row.Key)
}

// below returns the decisions in subagents of a session that need a person. A client that attaches
// to the parent gets them too.
func (ds *Decisions) below(ctx context.Context, id protocol.SessionID, key int64) ([]protocol.Decision, error) {
	open, err := ds.eng.store.FamilyDecisions(ctx, key)
	return slices.DeleteFunc(open, func(d protocol.Decision) bool { return d.SessionID == id || !decision.ForPerson(d) }), err
}
