package turn

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

func TestCheckpoints(t *testing.T) {
	steered := func(id protocol.InputID) protocol.Message {
		msg := user("steer " + string(id))
		msg.Origin = &protocol.Origin{Kind: protocol.OriginTurnInput, InputID: id}
		return msg
	}

	t.Run("runtime/T05 an empty checkpoint continues the turn after work and ends it before completion", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		if e := answer(t, m, EffectCheckpoint, nothing); e.Checkpoint.Kind != protocol.BoundaryAfterWork {
			t.Errorf("after tools the checkpoint is %s", e.Checkpoint.Kind)
		}
		answer(t, m, EffectModel, says("bye"))
		if e := answer(t, m, EffectCheckpoint, nothing); e.Checkpoint.Kind != protocol.BoundaryBeforeCompletion {
			t.Errorf("before the end the checkpoint is %s", e.Checkpoint.Kind)
		}
		if got := ended(t, m); got.Kind != protocol.OutcomeAssistantMessage || got.Text != "bye" {
			t.Errorf("outcome is %+v", got)
		}
	})

	t.Run("runtime/T05 a message before completion keeps the turn going", func(t *testing.T) {
		for name, d := range map[string]Delivery{
			"input":     {Inputs: []protocol.Message{steered("i1")}},
			"message":   {Messages: []protocol.Message{textOf(protocol.RoleSystem, protocol.PartText, "mind this")}},
			"transient": {Transient: []protocol.Message{user("once")}},
			"cause":     {Inputs: []protocol.Message{woken("c")}},
		} {
			m := New(testDriver{}, unbounded)
			answer(t, m, EffectModel, says("bye"))
			answer(t, m, EffectCheckpoint, Response{Checkpoint: &d})
			if e := waiting(t, m, EffectModel); e.Iteration != 2 {
				t.Errorf("%s: iteration %d", name, e.Iteration)
			}
			if e := answer(t, m, EffectModel, says("really bye")); len(e.Model.Transient) != len(d.Transient) {
				t.Errorf("%s: transient messages %v", name, e.Model.Transient)
			}
			if got := ended(t, m); got.Text != "really bye" {
				t.Errorf("%s: outcome is %+v", name, got)
			}
		}
	})

	t.Run("runtime/T05 a transient message is shown once", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Transient: []protocol.Message{user("once")}}})
		first := answer(t, m, EffectModel, calls("b"))
		answer(t, m, EffectTools, succeed("b"))
		second := waiting(t, m, EffectModel)
		if got := []int{len(first.Model.Transient), len(second.Model.Transient), len(m.Messages())}; !slices.Equal(got, []int{1, 0, 5}) {
			t.Errorf("shown %d and %d times; %d messages stored", got[0], got[1], got[2])
		}
	})

	t.Run("runtime/T05 a dropped message does not keep the turn going", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Inputs: []protocol.Message{woken("c")}}})
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{
			Messages:  []protocol.Message{textOf(protocol.RoleAssistant, protocol.PartProse, "I am the model")},
			Transient: []protocol.Message{textOf(protocol.RoleEvent, protocol.PartText, "event")},
			Inputs:    []protocol.Message{woken("c")},
		}})
		if got := ended(t, m); got.Text != "bye" || m.Iteration() != 2 {
			t.Errorf("outcome %+v in iteration %d", got, m.Iteration())
		}
		issues := m.Result().Issues
		if len(issues) != 2 || issues[0].Code != "message_role_dropped" || issues[1].Code != "message_role_dropped" {
			t.Errorf("issues are %+v", issues)
		}
	})

	t.Run("runtime/T05 the budget limits how often a turn is kept going", func(t *testing.T) {
		m := New(testDriver{}, bounded(1))
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Inputs: []protocol.Message{steered("i1")}}})
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns {
			t.Errorf("outcome is %+v", got)
		}
	})

	t.Run("runtime/T05 an abort keeps the inputs delivered with it", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{
			Inputs: []protocol.Message{steered("i1")}, Abort: &protocol.Issue{Kind: "plugin", Code: "no", Message: "stop it"},
		}})
		got := ended(t, m)
		if got.Kind != protocol.OutcomePluginAbort || got.Text != "stop it" || texts(m.Messages())[2] != "user:steer i1" {
			t.Errorf("outcome %+v, messages %q", got, texts(m.Messages()))
		}
	})

	t.Run("runtime/T06 inputs enter at their boundary or later", func(t *testing.T) {
		pending := map[protocol.InputID]protocol.Boundary{
			"early": protocol.BoundaryAfterWork, "late": protocol.BoundaryBeforeCompletion, "unset": "",
		}
		m := New(testDriver{}, unbounded)
		type entry struct {
			Input protocol.InputID
			At    protocol.Boundary
			Node  int
		}
		var entries []entry
		answers := []Response{calls("a"), says("one"), says("two")}
		for e, ok := m.Next(); ok; e, ok = m.Next() {
			switch e.Kind {
			case EffectSync:
				m.Deliver(e.ID, Response{Sync: &Environment{}})
			case EffectModel:
				m.Deliver(e.ID, answers[0])
				answers = answers[1:]
			case EffectTools:
				m.Deliver(e.ID, succeed("a"))
			case EffectCheckpoint:
				var d Delivery
				for _, id := range []protocol.InputID{"early", "late", "unset"} {
					if least, ok := pending[id]; ok && e.Checkpoint.Admits(least) {
						d.Inputs = append(d.Inputs, steered(id))
						delete(pending, id)
					}
				}
				m.Deliver(e.ID, Response{Checkpoint: &d})
			case EffectProgress:
				if e.Progress.Entered != "" {
					entries = append(entries, entry{e.Progress.Message.Origin.InputID, e.Progress.Entered, e.Progress.Ordinal})
				}
			}
		}
		want := []entry{
			{"early", protocol.BoundaryAfterWork, 3}, {"unset", protocol.BoundaryAfterWork, 4},
			{"late", protocol.BoundaryBeforeCompletion, 6},
		}
		if diff := cmp.Diff(want, entries); diff != "" {
			t.Error(diff)
		}
		for _, e := range entries {
			if got := m.Messages()[e.Node].Origin.InputID; got != e.Input {
				t.Errorf("node %d is of input %s, want %s", e.Node, got, e.Input)
			}
		}
	})

	t.Run("runtime/T24 each cause is added to a turn once, at the start or later", func(t *testing.T) {
		cfg := unbounded
		cfg.Input = []protocol.Message{woken("c1"), woken("c2"), woken("c1")}
		m := New(testDriver{}, cfg)
		enter := func(ids ...string) Response {
			d := &Delivery{}
			for _, id := range ids {
				d.Inputs = append(d.Inputs, woken(id))
			}
			return Response{Checkpoint: d}
		}
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		answer(t, m, EffectCheckpoint, enter("c1", "c3", "c3"))
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, enter("c2", "c3"))
		if got := ended(t, m); got.Text != "bye" {
			t.Errorf("what the turn knows keeps it from ending: %+v", got)
		}
		var got []string
		for _, msg := range m.Messages() {
			if c := msg.Cause(); c != nil {
				got = append(got, c.ID)
			}
		}
		if !slices.Equal(got, []string{"c1", "c2", "c3"}) {
			t.Errorf("causes are %q", got)
		}
	})
}

// woken returns the message of a wake.
func woken(id string) protocol.Message {
	m := textOf(protocol.RoleEvent, protocol.PartText, id+" is over")
	m.Origin = &protocol.Origin{Kind: protocol.OriginProcess, Cause: &protocol.TurnCause{ID: id, Type: "task"}}
	return m
}
