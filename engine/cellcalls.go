package engine

import (
	"slices"

	"lashd/engine/graph"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// runningCell returns the id of the item that shows the code cell that runs now; empty without one. Only the turn's
// goroutine may call it.
func (j *journal) runningCell() protocol.ItemID {
	for _, item := range slices.Backward(graph.Items(j.nodes)) {
		if item.Kind == protocol.ItemCodeCell && item.Status == protocol.ItemInProgress {
			return item.ID
		}
	}
	return ""
}

// showCellCall shows subscribers a call of a code cell: that it begins, if reply is nil, or how it ended. Subscribers see each
// end once, although both the call and the request that made it report it. Other calls are not shown. The goroutine
// that runs the call, or the one that waits for it, may use it.
func (m *callMaker) showCellCall(s *toolCall, reply *turn.ToolReply) {
	if s.item == "" || s.shownEnd {
		return
	}
	s.shownEnd = reply != nil
	call := s.shown(s.index, reply)
	m.feed.Show(protocol.Event{Type: protocol.EventCellCall, TurnID: m.caller.turnID(), ItemID: s.item, CellCall: &call})
}

// shown returns what people see of the call of a code cell, with how it was decided.
func (s *toolCall) shown(index int, reply *turn.ToolReply) protocol.CellCall {
	call := turn.ShownCall(s.original, index, reply)
	call.Decision = s.decided.Decision()
	return call
}

// shownCalls returns the first calls that a code cell made, as people see them. Use it after addNested, which gives each
// call that started a reply.
func (s *toolCall) shownCalls() (shown []protocol.CellCall) {
	for _, made := range s.inner.calls {
		if made.isValue() || made.reply == nil {
			continue
		}
		if len(shown) == protocol.MaxCellCalls {
			break
		}
		shown = append(shown, made.shown(len(shown)+1, made.reply))
	}
	return shown
}
