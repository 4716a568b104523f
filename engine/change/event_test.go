package change_test

import (
	"strings"
	"testing"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// TestEvents checks which parts of an event the log stores and which observers get.
func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	said := func(text string, ids ...protocol.InputID) change.Event {
		return change.Event{Event: protocol.Event{
			Type: protocol.EventTurnAccepted, TurnID: "trn_a", InputIDs: ids, Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}},
		}}
	}
	queued := protocol.QueuedInput{
		ID: "inp_a", TurnID: "trn_a", State: protocol.InputCancelled, Boundary: protocol.BoundaryAfterWork, Refused: protocol.WakeExpired,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: "hi"}}, AtMs: 3,
	}
	states := `"inputId":"inp_a","turnId":"trn_a","state":"cancelled","input":`
	for _, c := range []struct {
		name         string
		event        change.Event
		stored, wire string // without the braces; wire without session and seq
	}{
		{
			"it has session and seq only for observers", change.Event{Event: protocol.Event{SessionID: "ses_x", Seq: 3, Type: protocol.EventPluginCustom, Name: "n"}},
			`"atMs":99,"type":"plugin/custom","name":"n"`, `"atMs":99,"type":"plugin/custom","name":"n"`,
		},
		{
			"it keeps the time that it has", change.Event{Event: protocol.Event{AtMs: 4, Type: protocol.EventPluginCustom}},
			`"atMs":4,"type":"plugin/custom"`, `"atMs":4,"type":"plugin/custom"`,
		},
		{
			"an item stands in the log as what it refers to",
			change.Event{Ref: &graph.Ref{Node: "nod_a", Part: 1}, Event: protocol.Event{Type: protocol.EventItemCompleted, Item: &protocol.Item{ID: "itm_a", Text: "hi"}}},
			`"ref":{"node":"nod_a","part":1},"atMs":99,"type":"item/completed"`,
			`"atMs":99,"type":"item/completed","item":{"itemId":"itm_a","kind":"","status":"","atMs":0,"text":"hi"}`,
		},
		{
			"an item without a node stands there itself",
			change.Event{Event: protocol.Event{Type: protocol.EventItemCompleted, Item: &protocol.Item{ID: "itm_a"}}},
			`"atMs":99,"type":"item/completed","item":{"itemId":"itm_a","kind":"","status":"","atMs":0}`,
			`"atMs":99,"type":"item/completed","item":{"itemId":"itm_a","kind":"","status":"","atMs":0}`,
		},
		{
			"an input of 16 KiB stands in the log", said(long, "inp_a"),
			`"atMs":99,"turnId":"trn_a","type":"turn/accepted","input":[{"type":"text","text":"` + long + `"}],"inputIds":["inp_a"]`,
			`"atMs":99,"turnId":"trn_a","type":"turn/accepted","input":[{"type":"text","text":"` + long + `"}],"inputIds":["inp_a"]`,
		},
		{
			"a longer one does not", said(long+"x", "inp_a"),
			`"atMs":99,"turnId":"trn_a","type":"turn/accepted","inputIds":["inp_a"]`,
			`"atMs":99,"turnId":"trn_a","type":"turn/accepted","input":[{"type":"text","text":"` + long + `x"}],"inputIds":["inp_a"]`,
		},
		{
			"a longer one without a row does", said(long + "x"),
			`"atMs":99,"turnId":"trn_a","type":"turn/accepted","input":[{"type":"text","text":"` + long + `x"}]`,
			`"atMs":99,"turnId":"trn_a","type":"turn/accepted","input":[{"type":"text","text":"` + long + `x"}]`,
		},
		{
			"of what waits the log has what changes", change.Event{Event: protocol.Event{Type: protocol.EventQueueChanged, Queue: []protocol.QueuedInput{queued}}},
			`"atMs":99,"type":"queue/changed","queue":[{` + states + `null,"boundary":"afterWork","atMs":0,"refused":"expired"}]`,
			`"atMs":99,"type":"queue/changed","queue":[{` + states + `[{"type":"text","text":"hi"}],"boundary":"afterWork","atMs":3,"refused":"expired"}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := change.Base{Seq: 7}
			c2 := change.New(base, persistence.Commit{})
			c2.TellOf(protocol.Event{Type: protocol.EventPluginCustom})
			c2.Tell(c.event)
			if err := c2.Seal("ses_a", base, 99); err != nil {
				t.Fatal(err)
			}
			row, wires := c2.Events[1], c2.Wire()
			if want := "{" + c.stored + "}"; string(row.Body) != want || row.Type != c.event.Type {
				t.Errorf("stored as %s\n%s, want\n%s", row.Type, row.Body, want)
			}
			if want := `{"sessionId":"ses_a","seq":9,` + c.wire + "}"; len(wires) != 2 || string(wires[1]) != want {
				t.Errorf("sent as %d:\n%s, want\n%s", len(wires), wires[1], want)
			}
		})
	}
}
