package chat

import (
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

// call returns the item of a tool call that is running or has ended.
func call(id string, status protocol.ItemStatus) *protocol.Item {
	i := item(id, "", protocol.ItemToolCall)
	i.Tool, i.CallID, i.Status = "shell", protocol.CallID(id), status
	if status != protocol.ItemInProgress {
		i.Output = &protocol.ToolOutput{Status: protocol.OutputSuccess, Text: "ran"}
	}
	return i
}

// lost returns a transcript that applied events, lost its connection, and was
// attached again with the answer r.
func lost(t *testing.T, events []protocol.Event, r protocol.SessionAttachResult) (tr *transcript, out []entry) {
	t.Helper()
	tr = newTranscript()
	tr.attached(&protocol.SessionAttachResult{Session: protocol.Session{ID: "ses_1"}})
	for _, e := range events {
		tr.apply(e)
	}
	r.Session.ID = "ses_1"
	return tr, tr.attached(&r)
}

func TestTranscriptAfterAReconnect(t *testing.T) {
	begun := []protocol.Event{
		{Seq: 1, Type: protocol.EventTurnAccepted, TurnID: "trn_1", Input: said("go")},
		{Type: protocol.EventTurnStarted, TurnID: "trn_1"},
	}
	t.Run("runtime/X03 a task that started during the reconnect counts once", func(t *testing.T) {
		task := &protocol.Task{ID: "tsk_1"}
		tr, _ := lost(t, begun, protocol.SessionAttachResult{Seq: 2, TurnID: "trn_1", Tasks: []protocol.Task{*task}})
		tr.apply(protocol.Event{Seq: 2, Type: protocol.EventTaskStarted, Task: task})
		if len(tr.tasks) != 1 {
			t.Errorf("running tasks: %v", tr.tasks)
		}
	})
	t.Run("runtime/X03 a running call stays, streamed text does not", func(t *testing.T) {
		events := append(slices.Clip(begun), protocol.Event{Seq: 2, Type: protocol.EventItemStarted, Item: call("itm_c", protocol.ItemInProgress)},
			protocol.Event{Type: protocol.EventItemStarted, Item: item("itm_a", "half", protocol.ItemAgentMessage)})
		tr, _ := lost(t, events, protocol.SessionAttachResult{Seq: 2, TurnID: "trn_1"})
		if len(tr.open) != 1 || tr.open[0].ID != "itm_c" {
			t.Errorf("open items: %+v", tr.open)
		}
	})
	t.Run("runtime/X03 items that started during the reconnect follow those that ended", func(t *testing.T) {
		tr, out := lost(t, begun, protocol.SessionAttachResult{Seq: 4, TurnID: "trn_2", Entered: []protocol.QueuedInput{{ID: "inp_2", TurnID: "trn_2", Input: said("and then?")}}})
		for _, e := range []protocol.Event{
			{Seq: 2, Type: protocol.EventTurnAccepted, TurnID: "trn_2", Input: said("and then?")},
			{Seq: 3, Type: protocol.EventItemCompleted, Item: item("itm_a", "It is.", protocol.ItemAgentMessage)},
			{Seq: 4, Type: protocol.EventTurnCompleted, TurnID: "trn_1", Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage}},
		} {
			out = append(out, tr.apply(e)...)
		}
		if got, want := texts(out), []string{"It is.", "› and then?"}; !slices.Equal(got, want) || tr.turn != "trn_2" {
			t.Errorf("it shows %q, want %q; running turn: %s", got, want, tr.turn)
		}
	})
}

func TestTranscriptOfTheFirstAttach(t *testing.T) {
	r := &protocol.SessionAttachResult{
		Session: protocol.Session{ID: "ses_1"}, Seq: 7, TurnID: "trn_1", Items: []protocol.Item{*call("itm_c", protocol.ItemInProgress)},
		Entered: []protocol.QueuedInput{{ID: "inp_1", TurnID: "trn_1", Input: said("go on")}},
	}
	tr := newTranscript()
	if got := texts(tr.attached(r)); !slices.Equal(got, []string{"› go on"}) {
		t.Errorf("runtime/X03 for an input without an item it shows %q", got)
	}
	if len(tr.open) != 1 {
		t.Errorf("runtime/X03 a running call is not open: %+v", tr.open)
	}
	if out := tr.apply(protocol.Event{Seq: 8, Type: protocol.EventItemCompleted, Item: call("itm_c", protocol.ItemDone)}); len(out) != 1 || out[0].item.Output == nil {
		t.Errorf("runtime/X03 for a call that started before the attach it shows %+v", out)
	}
	if out := tr.apply(protocol.Event{Seq: 9, Type: protocol.EventItemCompleted, Item: item("itm_u", "go on", protocol.ItemUserMessage)}); len(out) != 0 {
		t.Errorf("runtime/X03 the input is shown again: %q", texts(out))
	}
}
