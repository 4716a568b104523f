package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// references finds what events of the log refer to, each thing once: nodes of the running turn, then those of the store; inputs.
type references struct {
	session *session
	key     int64 // of the session in the store
	nodes   map[protocol.NodeID]*protocol.Node
	inputs  map[protocol.InputID]protocol.QueuedInput
	err     error // the first one
}

func newReferences(s *session, key int64) *references {
	return &references{session: s, key: key, nodes: map[protocol.NodeID]*protocol.Node{}, inputs: map[protocol.InputID]protocol.QueuedInput{}}
}

// node is nil if there is no such node any more.
func (r *references) node(ctx context.Context, id protocol.NodeID) *protocol.Node {
	n, ok := r.nodes[id]
	if ok || r.err != nil {
		return n
	}
	if n, r.err = r.session.draft(ctx, id); n == nil && r.err == nil {
		var stored []protocol.Node
		if stored, r.err = r.session.eng.store.Nodes(ctx, []protocol.NodeID{id}); len(stored) > 0 {
			n = &stored[0]
		}
	}
	r.nodes[id] = n
	return n
}

// input is an input as it is now.
func (r *references) input(ctx context.Context, id protocol.InputID) protocol.QueuedInput {
	in, ok := r.inputs[id]
	if !ok && r.err == nil {
		in, r.err = r.session.eng.store.Input(ctx, r.key, id)
		r.inputs[id] = in
	}
	return in
}

// fill puts back what inputs say, where an event only names them.
func (r *references) fill(ctx context.Context, e *protocol.Event) {
	if e.Type == protocol.EventTurnAccepted && len(e.Input) == 0 {
		for _, id := range e.InputIDs {
			e.Input = append(e.Input, r.input(ctx, id).Input...)
		}
	}
	for i, then := range e.Queue {
		in := r.input(ctx, then.ID)
		in.TurnID, in.State, in.Boundary, in.Refused = then.TurnID, then.State, then.Boundary, then.Refused
		e.Queue[i] = in
	}
}
