package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

// spoil appends to a slice that the caller does not own.
func spoil[T any](list []T, junk T) {
	if list = append(list, junk); len(list) > cap(list) {
		panic("unreachable: it keeps the append")
	}
}

// TestSharing appends to the slices that the machine returns, as a careless caller would.
func TestSharing(t *testing.T) {
	t.Run("runtime/T01 appending to returned slices does not affect the machine", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		junk := protocol.Issue{Code: "junk"}
		var old Result
		var oldMessages []protocol.Message
		var oldCall *ModelCall
		for n := range 7 {
			e := waiting(t, m, EffectModel)
			before := encoded(t, e)
			id := protocol.CallID(fmt.Sprint("c", n))
			m.Deliver(e.ID, calls(id))
			answer(t, m, EffectTools, succeed(id))
			d := &Delivery{Inputs: []protocol.Message{woken(string(id))}, Messages: []protocol.Message{textOf(protocol.RoleEvent, protocol.PartText, "x")}}
			answer(t, m, EffectCheckpoint, Response{Checkpoint: d})
			if n == 5 { // the slices have room here, and grow into it below
				old, oldMessages, oldCall = m.Result(), m.Messages(), e.Model
			}
			if after := encoded(t, e); after != before {
				t.Fatalf("an effect changed after it was handed out: %s", cmp.Diff(before, after))
			}
		}
		// Older slices share memory with newer ones: an append must not reach it.
		spoil(old.Messages, user("junk"))
		spoil(old.Issues, junk)
		spoil(old.ToolCalls, protocol.ToolCallRecord{Name: "junk"})
		spoil(old.Calls, protocol.CallRecord{Model: "junk"})
		spoil(oldMessages, user("junk"))
		spoil(oldCall.Messages, user("junk"))
		text := snapshot(t, m)
		if strings.Contains(string(text), "junk") {
			t.Errorf("a caller's append shows in the machine: %s", text)
		}
		kept := m.Result()
		before := encoded(t, kept)
		kept.Issues = append(kept.Issues, junk)
		m.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Code: "later"})
		if kept.Issues[len(kept.Issues)-1] != junk {
			t.Errorf("the machine wrote over what a caller appended: %+v", kept.Issues)
		}
		kept.Issues = kept.Issues[:len(kept.Issues)-1]
		if after := encoded(t, kept); after != before {
			t.Errorf("an earlier result changed: %s", cmp.Diff(before, after))
		}
	})
}
