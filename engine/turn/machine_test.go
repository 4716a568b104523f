package turn

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

func TestMachine(t *testing.T) {
	t.Run("runtime/T01 effects and their answers make a turn", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		var got []string
		script := map[uint64]Response{2: calls("a", "b"), 3: succeed("b", "a"), 6: says("done")}
		for e, ok := m.Next(); ok; e, ok = m.Next() {
			got = append(got, fmt.Sprintf("%d %s %d", e.ID, e.Kind, e.Iteration))
			switch {
			case e.Kind == EffectSync:
				m.Deliver(e.ID, Response{Sync: &Environment{System: "s"}})
			case e.Kind == EffectCheckpoint:
				m.Deliver(e.ID, nothing)
			case e.Waits():
				m.Deliver(e.ID, script[e.ID])
			}
		}
		want := []string{
			"1 sync 1", "2 model 1", "0 progress 1", "3 tools 1", "0 progress 1", "4 checkpoint 1",
			"5 sync 2", "6 model 2", "0 progress 2", "7 checkpoint 2", "0 done 2",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if got := texts(m.Messages()); !slices.Equal(got, []string{
			"user:hello", "assistant:call acall b", "user:result a successresult b success", "assistant:done",
		}) {
			t.Errorf("messages are %q", got)
		}
		if got := m.Result().ToolCalls; len(got) != 2 || got[0].CallID != "a" || got[0].Order != 1 || got[1].Order != 0 {
			t.Errorf("tool calls are %+v, want the order of the calls, and the order in which they completed", got)
		}
	})

	t.Run("runtime/T02 a restored machine asks for the same effect", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		for _, r := range []Response{
			{Sync: &Environment{System: "<s>", Tools: []protocol.ToolManifest{{Name: "look", Input: json.RawMessage(` {"type" : "object"} `)}}}},
			calls("a"), succeed("a"), nothing, {Sync: &Environment{}}, says("bye"), nothing,
		} {
			// Effects without an answer are still in the outbox here; they must survive too.
			restored := restore(t, m)
			if diff := cmp.Diff(encoded(t, drainOutbox(restored)), encoded(t, drainOutbox(m))); diff != "" {
				t.Fatal(diff)
			}
			before, _ := m.Next()
			m = restore(t, m)
			after, _ := m.Next()
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("effect %d changed: %s", before.ID, diff)
			}
			m.Deliver(after.ID, r)
		}
		if got := ended(t, restore(t, m)); got.Text != "bye" {
			t.Errorf("outcome is %+v", got)
		}
		drainOutbox(m)
		if e, ok := restore(t, m).Next(); ok {
			t.Errorf("a machine that was done emits %s again", e.Kind)
		}
	})

	t.Run("runtime/T03 answers to other effects are ignored", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		first := waiting(t, m, EffectSync)
		m.Deliver(first.ID, Response{Sync: &Environment{System: "one"}})
		before := snapshot(t, m)
		for _, id := range []uint64{0, first.ID, 3, math.MaxUint64} {
			m.Deliver(id, Response{Sync: &Environment{System: "two"}})
			m.Deliver(id, says("stale"))
		}
		if after := snapshot(t, m); string(after) != string(before) {
			t.Errorf("a stale answer changed the machine: %s", cmp.Diff(string(before), string(after)))
		}
		m.Cancel(protocol.CancelEvidence{RequestID: "r"}, nil)
		m.Deliver(2, says("late"))
		if got := ended(t, m); got.Kind != protocol.OutcomeCancelled || len(m.Messages()) != 1 {
			t.Errorf("outcome %+v, messages %q", got, texts(m.Messages()))
		}
	})

	t.Run("runtime/T04 the environment is synced once in each iteration", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		for i, tools := range []string{"look", "leap"} {
			e := waiting(t, m, EffectSync)
			if e.Iteration != i+1 || e.Sync.Recompute != (i > 0) {
				t.Errorf("sync %+v in iteration %d", e.Sync, e.Iteration)
			}
			m.Deliver(e.ID, Response{Sync: &Environment{System: tools, Tools: []protocol.ToolManifest{{Name: tools}}}})
			call, _ := m.Next()
			if call.Kind != EffectModel || call.Model.System != tools || call.Model.Tools[0].Name != tools {
				t.Errorf("after the sync comes %+v", call)
			}
			m.Deliver(call.ID, calls(protocol.CallID(tools)))
			answer(t, m, EffectTools, succeed(protocol.CallID(tools)))
			answer(t, m, EffectCheckpoint, nothing)
		}
	})
}

// snapshot returns the whole machine as JSON.
func snapshot(t fataler, m *Machine) []byte {
	t.Helper()
	text, err := json.Marshal(&m.s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// restore writes the machine and reads it back; both must be equal.
func restore(t fataler, m *Machine) *Machine {
	t.Helper()
	again := &Machine{driver: m.driver}
	if err := json.Unmarshal(snapshot(t, m), &again.s); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.s, again.s) { // cmp.Diff takes longer
		t.Fatalf("restored machine differs: %s", cmp.Diff(m.s, again.s))
	}
	return again
}

func drainOutbox(m *Machine) []Effect {
	var effects []Effect
	for len(m.s.Outbox) > 0 {
		e, _ := m.Next()
		effects = append(effects, e)
	}
	return effects
}
