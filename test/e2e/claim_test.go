package e2e

import (
	"fmt"

	"lashd/rpc/protocol"
)

// claim is a turn/start request. acked is nil if the answer was lost.
type claim struct {
	params protocol.TurnStartParams
	acked  *protocol.TurnStartResult
}

// answered is a decision whose answer was acknowledged.
type answered struct {
	id protocol.DecisionID
	protocol.DecisionRespondResult
}

// kept has another client give another answer, which must be rejected.
func (a answered) kept(p *peer) error {
	r, err := respond(p, protocol.Decision{ID: a.id}, protocol.ChooseReject)
	if err != nil || r.Won || r.Answer.By != a.Answer.By || r.Answer.Choice != a.Answer.Choice || r.Answer.AtMs != a.Answer.AtMs {
		return fmt.Errorf("I1: decision %s was answered %+v; now it has %+v, %v", a.id, a.Answer, r.Answer, err)
	}
	return nil
}

// kept repeats the request with its key. It remembers the answer if there was none before.
func (c *claim) kept(p *peer) error {
	for range 2 {
		r, err := try[protocol.TurnStartResult](p, "turn/start", c.params)
		if err != nil {
			return fmt.Errorf("I8: the retry of turn/start %s: %w", c.params.IdempotencyKey, err)
		}
		if c.acked == nil {
			c.acked = &r
			continue
		}
		want := *c.acked
		want.Duplicate = true
		if r != want {
			return fmt.Errorf("I8: turn/start %s was answered %+v; now %+v", c.params.IdempotencyKey, want, r)
		}
	}
	return nil
}
