package e2e

import (
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// witness is a client that remembers what was acknowledged to it.
type witness struct {
	*peer
	name, cwd string
	person    bool // it approves every call
	big       bool // its first command prints more than fits into the database
	created   *protocol.SessionNewResult
	claims    []*claim
	answers   []answered
	told      []told
}

func newWitness(p *peer, name, cwd string) *witness { return &witness{peer: p, name: name, cwd: cwd} }

func (w *witness) id() protocol.SessionID { return protocol.SessionID("ses_" + w.name) }

// work starts turns in a row until the daemon has died.
func (w *witness) work() {
	r, err := w.create(w.peer)
	if err != nil {
		return
	}
	w.created = &r
	for {
		c := w.claim()
		w.claims = append(w.claims, c)
		r, err := try[protocol.TurnStartResult](w.peer, "turn/start", c.params)
		if err != nil {
			return
		}
		c.acked = &r
		if w.person && !w.allow(r.TurnID) {
			return
		}
		if _, err := try[protocol.TurnReport](w.peer, "turn/wait", protocol.TurnWaitParams{TurnID: r.TurnID}); err != nil {
			return
		}
	}
}

func (w *witness) create(p *peer) (protocol.SessionNewResult, error) {
	params := protocol.SessionNewParams{SessionID: w.id(), Cwd: w.cwd, Unknown: &protocol.UnknownOutcomeRule{DeadlineMs: new(int64)}}
	params.IdempotencyKey = "new-" + w.name
	if w.person {
		params.Approval = &protocol.ApprovalConfig{Mode: protocol.ApproveAsk}
	}
	return try[protocol.SessionNewResult](p, "session/new", params)
}

// claim returns the next turn to request: the model runs a command that writes the turn's key, and
// then streams.
func (w *witness) claim() *claim {
	key := fmt.Sprintf("turn-%s-%d", w.name, len(w.claims))
	command := "echo " + key + " >> ran; sleep 0.01"
	if w.big && len(w.claims) == 0 {
		command += "; cat ran; head -c 1100000 /dev/zero | tr '\\000' a"
	}
	params := protocol.TurnStartParams{SessionID: w.id(), Input: text(paced(command))}
	params.IdempotencyKey = key
	return &claim{params: params}
}

// allow approves the turn's call. It returns false if the daemon has died.
func (w *witness) allow(id protocol.TurnID) bool {
	var d protocol.Decision
	asked := w.await(func(all []told) bool {
		for _, e := range all {
			if opened(e.Event) && e.TurnID == id {
				d = *e.Decision
			}
		}
		return d.ID != ""
	})
	if asked != nil {
		return false
	}
	r, err := respond(w.peer, d, protocol.ChooseAllowOnce)
	if err == nil {
		w.answers = append(w.answers, answered{d.ID, r})
	}
	return err == nil
}

func respond(p *peer, d protocol.Decision, choice protocol.DecisionChoice) (protocol.DecisionRespondResult, error) {
	return try[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: choice, ArgsHash: d.ArgsHash})
}

// kept checks with the next daemon everything that was acknowledged, repeats the rest, and waits for
// all of it.
func (w *witness) kept(p *peer) error {
	r, err := w.create(p)
	if err != nil {
		return fmt.Errorf("I1: session %s: %w", w.id(), err)
	}
	if w.created != nil && (r.SessionID != w.created.SessionID || r.Seq != w.created.Seq || !r.Duplicate) {
		return fmt.Errorf("I8: session/new was answered %+v; now %+v", *w.created, r)
	}
	var found []error
	for _, a := range w.answers {
		found = append(found, a.kept(p))
	}
	for _, c := range w.claims {
		found = append(found, c.kept(p))
	}
	if err := errors.Join(found...); err != nil {
		return err
	}
	for _, c := range w.claims {
		found = append(found, w.ended(p, c))
	}
	return errors.Join(found...)
}

// ended waits for the end of the turn and approves its call if needed.
func (w *witness) ended(p *peer, c *claim) error {
	for {
		r, err := try[protocol.TurnReport](p, "turn/wait", protocol.TurnWaitParams{TurnID: c.acked.TurnID, TimeoutMs: 20})
		switch {
		case err != nil:
			return fmt.Errorf("I1: turn %s: %w", c.acked.TurnID, err)
		case r.State == protocol.TurnCompleted:
			return nil
		case r.State.Terminal():
			return fmt.Errorf("I3: turn %s is %s: %+v", r.TurnID, r.State, r.Outcome)
		case r.State == protocol.TurnWaiting:
			w.allowRest(p)
		}
	}
}

func (w *witness) allowRest(p *peer) {
	open, err := try[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: w.id()})
	if err != nil {
		return // ended reports the failure of the turn
	}
	for _, d := range open.Data {
		if d.Kind == protocol.DecisionApproval {
			respond(p, d, protocol.ChooseAllowOnce) // ended reports the failure of the turn
		}
	}
}

// oneMore runs another turn in the session.
func (w *witness) oneMore(p *peer) error {
	r, err := try[protocol.TurnReport](p, "turn/run", protocol.TurnStartParams{SessionID: w.id(), Input: text("[[fake]]")})
	if err == nil && r.State != protocol.TurnCompleted {
		err = fmt.Errorf("the next turn is %s: %+v", r.State, r.Outcome)
	}
	return err
}

// repeated checks that the log of the session has no gaps, contains everything that was received, and
// has each turn once.
func (w *witness) repeated(all []told, turns []protocol.TurnID) error {
	var found []error
	if err := gapless(all, 1); err != nil {
		found = append(found, fmt.Errorf("I2: %w", err))
	}
	if err := repeats(all, w.told); err != nil {
		found = append(found, fmt.Errorf("I9: %w", err))
	}
	for _, id := range turns {
		if err := lifeOf(all, id); err != nil {
			found = append(found, fmt.Errorf("I3: %w", err))
		}
	}
	return errors.Join(found...)
}
