package decision

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"lashd/rpc/protocol"
)

// patience is how long an answer that changes a call waits for the turn of the call.
const patience = 10 * time.Second

// ErrUnattended means that the turn of a decision does not wait for its answer yet, because it is resuming after a restart.
var ErrUnattended = errors.New("the turn of this decision is still being resumed; nothing was changed, so send the answer again")

// Changed is a call as an answer changes it.
type Changed struct {
	Args   json.RawMessage // nil: the answer changes nothing
	Places []string        // where the paths of the call lead with these arguments
}

// Review checks an answer that changes the call of a decision, and returns the call as it will run. It may read files, and is called
// from any goroutine.
type Review func(context.Context, *protocol.DecisionRespondParams) (Changed, error)

// Attend says how answers that change the call are checked. The code that waits for the answer calls it before it waits, and again
// after it has been suspended.
func (o *Open) Attend(r Review) {
	if o.review.Swap(&r) == nil {
		close(o.attended)
	}
}

// Change returns what an answer makes of the call. It waits until the turn attends to the decision.
func (o *Open) Change(ctx context.Context, p *protocol.DecisionRespondParams) (Changed, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-o.attended:
		return (*o.review.Load())(ctx, p)
	case <-o.done: // another answer counts
		return Changed{}, nil
	case <-late.C:
		return Changed{}, ErrUnattended
	case <-ctx.Done():
		return Changed{}, context.Cause(ctx)
	}
}
