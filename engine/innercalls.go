package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// innerRows is how many calls a call may make, and sets their rows in the journal apart: those of the n-th call of a batch
// begin at (n+1)*innerRows.
const innerRows = 1 << 16

// inner are the calls that a call makes, in order.
type inner struct {
	known  map[int]persistence.Effect // rows of an earlier run of the daemon
	stages []*stage
	next   int // of the present attempt; one that is made again begins anew
}

func (in *inner) know(n int, row persistence.Effect) {
	if in.known == nil {
		in.known = map[int]persistence.Effect{}
	}
	in.known[n] = row
}

// callFor makes calls for a call that runs, and gives what they came to as the model would see it. What they came to is
// durable then.
func (r *run) callFor(ctx context.Context, outer *stage, wanted []tool.Request) ([]protocol.ToolOutput, error) {
	stages := make([]*stage, len(wanted))
	for i, w := range wanted {
		var err error
		if stages[i], err = r.innerStage(outer, w); err != nil {
			return nil, err
		}
	}
	if r.owner == nil {
		if err := r.directly(ctx, stages); err != nil {
			return nil, err
		}
		return outputs(stages), nil
	}
	err := r.perform(ctx, stages)
	switch {
	case errors.As(err, new(*OverdueError)): // the turn fails once the maker has returned
	case errors.As(err, new(*cancelled)):
		r.completeRest(ctx, stages)
		cancelRest(stages)
	case err != nil:
		return nil, errors.Join(err, r.keepResults(stages))
	}
	rank(stages)
	if rows := r.results(stages); len(rows) > 0 {
		if err := r.flush(ctx, rows); err != nil {
			return nil, err
		}
	}
	for _, s := range stages {
		s.stored = true
	}
	return outputs(stages), nil
}

func outputs(stages []*stage) []protocol.ToolOutput {
	all := make([]protocol.ToolOutput, len(stages))
	for i, s := range stages {
		all[i] = s.reply.Seen()
	}
	return all
}

// innerStage is the next call that a call makes: the same one that was made before, if it was.
func (r *run) innerStage(outer *stage, w tool.Request) (*stage, error) {
	n := outer.inner.next
	if n >= innerRows {
		return nil, fmt.Errorf("a call may make %d calls", innerRows)
	}
	outer.inner.next++
	if w.Grant != nil {
		if _, err := json.Marshal(w.Grant); err != nil {
			return nil, fmt.Errorf("grant: %w", err)
		}
		w.Name = w.Grant.Manifest.Name
	}
	call := protocol.ToolCall{
		CallID: protocol.CallID(fmt.Sprintf("%s/%d", outer.call.CallID, n)), Name: w.Name, Args: w.Args, Parent: outer.call.CallID,
	}
	if !json.Valid(call.Args) {
		call.Args = json.RawMessage(`{}`)
	}
	s := &stage{asked: call, call: call, grant: w.Grant, effect: outer.effect, ordinal: (outer.ordinal+1)*innerRows + n}
	s.sandboxed = outer.sandboxed || r.plugins.Sandboxed(outer.entry.Source())
	if n < len(outer.inner.stages) {
		before := outer.inner.stages[n]
		if string(before.hash()) != string(s.hash()) {
			return nil, &JournalError{Effect: outer.effect, Kind: "tools", Diff: fmt.Sprintf("call %d", s.ordinal)}
		}
		return before, nil
	}
	s.find(r.catalog)
	if row, ok := outer.inner.known[n]; ok {
		if err := s.recall(row); err != nil {
			return nil, err
		}
	}
	outer.inner.stages = append(outer.inner.stages, s)
	return s, nil
}

// gather adds to the reply of a call what came of the calls that it made.
func (s *stage) gather(reply *turn.ToolReply) {
	var said []protocol.Message
	for _, made := range s.inner.stages {
		if made.reply == nil {
			if made.attempt == 0 && !made.began {
				continue
			}
			made.unfinished()
		}
		got := made.reply
		reply.Calls = append(reply.Calls, protocol.ToolCallRecord{
			CallID: got.CallID, Name: got.Name, Args: made.call.Args, Output: got.Output, DurationMs: got.DurationMs, Order: got.Order,
			Parent: s.call.CallID,
		})
		if reply.Control == nil && got.Output.Status == protocol.OutputSuccess {
			reply.Control = got.Control
		}
		said = append(said, made.messages...)
		s.overdue = s.overdue || made.overdue
	}
	s.messages = append(said, s.messages...)
}

// directly makes the calls of a call that belongs to no turn, one after the other.
func (r *run) directly(ctx context.Context, stages []*stage) error {
	for _, s := range stages {
		if s.reply != nil {
			continue
		}
		if err := r.direct(ctx, s); err != nil {
			return err
		}
		if err := r.storeDirect(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
