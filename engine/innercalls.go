package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxNestedCalls is how many calls a call may make, and sets their rows in the journal apart: those of the n-th call of a batch
// begin at (n+1)*maxNestedCalls.
const maxNestedCalls = 1 << 16

// nestedCalls are the calls that a call makes, in order.
type nestedCalls struct {
	rows  map[int]persistence.Effect // rows of an earlier run of the daemon
	calls []*toolCall
	next  int // position of the next call in the current attempt; each attempt starts at 0
}

func (in *nestedCalls) addRow(n int, row persistence.Effect) {
	if in.rows == nil {
		in.rows = map[int]persistence.Effect{}
	}
	in.rows[n] = row
}

// runNested makes calls for a call that runs, and gives what they came to as the model would see it. What they came to is
// durable then.
func (m *callMaker) runNested(ctx context.Context, outer *toolCall, wanted []tool.Request) ([]protocol.ToolOutput, error) {
	calls := make([]*toolCall, len(wanted))
	for i, w := range wanted {
		var err error
		if calls[i], err = m.nestedCall(outer, w); err != nil {
			return nil, err
		}
	}
	if err := m.caller.nested(ctx, m, calls); err != nil {
		return nil, err
	}
	return outputs(calls), nil
}

func outputs(calls []*toolCall) []protocol.ToolOutput {
	all := make([]protocol.ToolOutput, len(calls))
	for i, s := range calls {
		all[i] = s.reply.Seen()
	}
	return all
}

// nestedCall is the next call that a call makes: the same one that was made before, if it was.
func (m *callMaker) nestedCall(outer *toolCall, w tool.Request) (*toolCall, error) {
	n := outer.inner.next
	if n >= maxNestedCalls {
		return nil, fmt.Errorf("too many tool calls: one tool call may make at most %d", maxNestedCalls)
	}
	outer.inner.next++
	if w.Grant != nil {
		if _, err := json.Marshal(w.Grant); err != nil {
			return nil, fmt.Errorf("grant: %w", err)
		}
		w.Name = w.Grant.Manifest.Name
	}
	call := protocol.ToolCall{
		CallID: protocol.CallID(fmt.Sprintf("%s/%d", outer.CallID, n)), Name: w.Name, Args: w.Args, Parent: outer.CallID,
	}
	if !json.Valid(call.Args) {
		call.Args = json.RawMessage(`{}`)
	}
	s := &toolCall{original: call, ToolCall: call, grant: w.Grant, effect: outer.effect, ordinal: (outer.ordinal+1)*maxNestedCalls + n}
	s.sandboxed = outer.sandboxed || m.hooks.plugins.Sandboxed(outer.entry.Source())
	if n < len(outer.inner.calls) {
		before := outer.inner.calls[n]
		if string(before.hash()) != string(s.hash()) {
			return nil, &JournalError{Effect: outer.effect, Kind: "tools", Diff: fmt.Sprintf("call %d", s.ordinal)}
		}
		return before, nil
	}
	s.find(m.catalog)
	if row, ok := outer.inner.rows[n]; ok {
		if err := s.restore(row); err != nil {
			return nil, err
		}
	}
	outer.inner.calls = append(outer.inner.calls, s)
	return s, nil
}

// addNested adds to the reply of a call what came of the calls that it made.
func (s *toolCall) addNested(reply *turn.ToolReply) {
	var said []protocol.Message
	for _, made := range s.inner.calls {
		if made.reply == nil {
			if made.attempt == 0 && !made.resultLost {
				continue
			}
			made.endUnfinished()
		}
		got := made.reply
		reply.Calls = append(reply.Calls, protocol.ToolCallRecord{
			CallID: got.CallID, Name: got.Name, Args: made.Args, Output: got.Output, DurationMs: got.DurationMs, Order: got.Order,
			Parent: s.CallID,
		})
		if reply.Control == nil && got.Output.Status == protocol.OutputSuccess {
			reply.Control = got.Control
		}
		said = append(said, made.messages...)
		s.overdue = s.overdue || made.overdue
	}
	s.messages = append(said, s.messages...)
}
