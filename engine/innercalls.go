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

// maxNestedCalls is the number of calls that one tool call may make. It also separates their journal rows from
// those of the batch: the rows of the calls that the n-th call of a batch makes have the ordinals from
// (n+1)*maxNestedCalls.
const maxNestedCalls = 1 << 16

// nestedCalls are the calls that one tool call makes, in the order in which it makes them. The goroutine that runs
// the outer call owns them. An outer call that is retried makes the same calls in the same order: it gets the
// results that it already has, and only calls after these run.
type nestedCalls struct {
	// rows has the journal rows that an earlier run of the daemon wrote, by the position of the call.
	rows map[int]persistence.Effect // rows of an earlier run of the daemon
	// calls are all calls made so far, in any attempt of the outer call.
	calls []*toolCall
	next  int // position of the next call in the current attempt; each attempt starts at 0
	// item shows these calls to people while they run; empty: nothing does
	item protocol.ItemID
	made int // number of calls that are not values
}

// addRow adds the journal row of the n-th call, before the outer call runs again. A later row of the same call
// replaces an earlier one.
func (in *nestedCalls) addRow(n int, row persistence.Effect) {
	if in.rows == nil {
		in.rows = map[int]persistence.Effect{}
	}
	in.rows[n] = row
}

// runNested runs tool calls for the call outer, which is running, and returns their outputs as the model would see
// them, in the order of wanted. The results are durable when it returns. toolHost lets only one runNested of an
// outer call run at a time. A tool that fails is an output; an error means that the results are not known.
func (m *callMaker) runNested(ctx context.Context, outer *toolCall, wanted []tool.Request) ([]protocol.ToolOutput, error) {
	calls := make([]*toolCall, len(wanted))
	for i, w := range wanted {
		var err error
		if calls[i], err = m.nestedCall(outer, w); err != nil {
			return nil, err
		}
	}
	for _, s := range calls {
		m.showCellCall(s, nil)
	}
	if err := m.caller.nested(ctx, m, calls); err != nil {
		return nil, err
	}
	for _, s := range calls {
		m.showCellCall(s, s.reply)
	}
	return outputs(calls), nil
}

// outputs returns what the model sees of calls that all have a reply.
func outputs(calls []*toolCall) []protocol.ToolOutput {
	all := make([]protocol.ToolOutput, len(calls))
	for i, s := range calls {
		all[i] = s.reply.Seen()
	}
	return all
}

// nestedCall returns the next call that outer makes. If an earlier attempt or an earlier run of the daemon made
// this call, it returns that call with its result. The request must then be identical: a tool that makes other
// calls when it is repeated gets a *JournalError, because a result must not answer a different call.
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
		w = w.Of(outer.entry)
	}
	call := protocol.ToolCall{
		CallID: protocol.CallID(fmt.Sprintf("%s/%d", outer.CallID, n)), Name: w.Name, Args: w.Args, Parent: outer.CallID,
	}
	if !json.Valid(call.Args) {
		call.Args = json.RawMessage(`{}`)
	}
	s := &toolCall{original: call, ToolCall: call, grant: w.Grant, effect: outer.effect, ordinal: (outer.ordinal+1)*maxNestedCalls + n, cell: outer.cell}
	s.sandboxed = outer.sandboxed || outer.entry != nil && m.hooks.plugins.Sandboxed(outer.entry.Source())
	if n < len(outer.inner.calls) {
		before := outer.inner.calls[n]
		if string(before.hash()) != string(s.hash()) {
			return nil, &JournalError{Effect: outer.effect, Kind: "tools", Diff: fmt.Sprintf("call %d", s.ordinal)}
		}
		return before, nil
	}
	if !s.isValue() {
		outer.inner.made++
		s.item, s.index = outer.inner.item, outer.inner.made
		s.find(m.catalog)
	}
	if row, ok := outer.inner.rows[n]; ok {
		if err := s.restore(row); err != nil {
			return nil, err
		}
	}
	outer.inner.calls = append(outer.inner.calls, s)
	return s, nil
}

// addNested adds to the reply of a call the records, messages and control of the calls that it made. A call that
// started and has no reply is recorded as unfinished; one that never started is left out. The first control of a
// successful call counts. The outer call is overdue if any of them is.
func (s *toolCall) addNested(reply *turn.ToolReply) {
	var said []protocol.Message
	for _, made := range s.inner.calls {
		if made.isValue() {
			continue
		}
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
