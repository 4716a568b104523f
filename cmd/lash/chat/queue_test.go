package chat

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"lashd/rpc/protocol"
)

func queued(id, turn, text string, state protocol.InputState) protocol.QueuedInput {
	return protocol.QueuedInput{ID: protocol.InputID(id), TurnID: protocol.TurnID(turn), State: state, Input: said(text)}
}

func changed(queue ...protocol.QueuedInput) protocol.Event {
	return protocol.Event{Type: protocol.EventQueueChanged, Queue: queue}
}

// running is a turn with a steered input that it has not read yet.
var running = []protocol.Event{
	{Type: protocol.EventTurnAccepted, TurnID: "trn_1", Input: said("go")},
	{Type: protocol.EventTurnStarted, TurnID: "trn_1"},
	changed(queued("inp_2", "trn_1", "steer me", protocol.InputPendingActive)),
}

func TestQueuedInputs(t *testing.T) {
	over := protocol.Event{Type: protocol.EventTurnCompleted, TurnID: "trn_1", Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeCancelled}}
	later := queued("inp_3", "trn_2", "later", protocol.InputQueued)
	accepted := protocol.Event{Type: protocol.EventTurnAccepted, TurnID: "trn_2", Input: said("later"), InputIDs: []protocol.InputID{"inp_3"}}
	for _, c := range []struct {
		name   string
		events []protocol.Event
		want   []string
	}{
		{"a steered input is shown when the turn reads it, and not again as an item", []protocol.Event{
			{Type: protocol.EventInputAccepted, TurnID: "trn_1", InputIDs: []protocol.InputID{"inp_2"}}, changed(),
			{Type: protocol.EventItemCompleted, Item: item("itm_u", "steer me", protocol.ItemUserMessage)},
		}, []string{"› go", "› steer me"}},
		{"an input that missed its turn is shown where the model reads it", []protocol.Event{
			accepted, changed(queued("inp_2", "trn_1", "steer me", protocol.InputPendingActive), later), over,
			changed(queued("inp_2", "trn_2", "steer me", protocol.InputDeferred), later),
			changed(), {Type: protocol.EventTurnStarted, TurnID: "trn_2"},
		}, []string{"› go", "· Stopped.", "› steer me", "› later"}},
		{"each of several inputs that missed their turn is shown", []protocol.Event{
			over,
			{Type: protocol.EventTurnAccepted, TurnID: "trn_2", Input: slices.Concat(said("a"), said("b")), InputIDs: []protocol.InputID{"inp_2", "inp_3"}},
			changed(queued("inp_2", "trn_2", "a", protocol.InputDeferred), queued("inp_3", "trn_2", "b", protocol.InputDeferred)),
			changed(), {Type: protocol.EventTurnStarted, TurnID: "trn_2"},
		}, []string{"› go", "· Stopped.", "› a", "› b"}},
		{"a turn that never started does not end", []protocol.Event{
			accepted, changed(later),
			{Type: protocol.EventTurnCompleted, TurnID: "trn_2", Outcome: &protocol.TurnOutcome{
				Kind: protocol.OutcomeCancelled, Cancel: &protocol.CancelEvidence{Reason: "its input was withdrawn"},
			}},
			changed(),
		}, []string{"› go", "· Not started: later (its input was withdrawn)"}},
	} {
		tr := newTranscript()
		var out []entry
		for _, e := range slices.Concat(running, c.events) {
			out = append(out, tr.apply(e)...)
		}
		if got := texts(out); !slices.Equal(got, c.want) || len(tr.queue) > 0 {
			t.Errorf("runtime/X03 %s: it shows %q, want %q; queue: %+v", c.name, got, c.want, tr.queue)
		}
	}
}

func TestSteeringIsShownAtOnce(t *testing.T) {
	u := &ui{talk: newTranscript(), width: 60, connected: true}
	for _, e := range append(slices.Clip(running), changed(running[2].Queue[0], queued("inp_3", "trn_2", "later", protocol.InputQueued))) {
		u.talk.apply(e)
	}
	if got := ansi.Strip(strings.Join(u.queued(), "\n")); got != "  steering: steer me\n  queued: later" {
		t.Errorf("issue/6-4 it shows %q", got)
	}
}
