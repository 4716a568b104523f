package chat

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

func item(id, text string, kind protocol.ItemKind) *protocol.Item {
	return &protocol.Item{ID: protocol.ItemID(id), Kind: kind, TurnID: "trn_1", Text: text}
}

func said(text string) []protocol.InputPart {
	return []protocol.InputPart{{Type: protocol.InputText, Text: text}}
}

// texts returns entries as they appear on the screen, without styles.
func texts(out []entry) (all []string) {
	for _, e := range out {
		all = append(all, ansi.Strip(e.shown(markdown.Style{Width: 60})))
	}
	return all
}

// events is a sequence of two turns. Some events occur twice, as after a
// reconnect.
var events = []protocol.Event{
	{Type: protocol.EventTurnAccepted, TurnID: "trn_1", Input: said("what is it?")},
	{Type: protocol.EventTurnStarted, TurnID: "trn_1"},
	{Type: protocol.EventTurnAccepted, TurnID: "trn_2", Input: said("and then?")},
	{Type: protocol.EventItemStarted, Item: item("itm_a", "", protocol.ItemAgentMessage)},
	{Type: protocol.EventItemDelta, ItemID: "itm_a", Offset: new(0), Text: "It "},
	{Type: protocol.EventItemDelta, ItemID: "itm_a", Offset: new(3), Text: "is"},
	{Type: protocol.EventItemDelta, ItemID: "itm_a", Offset: new(3), Text: "is"},
	{Type: protocol.EventItemCompleted, Item: item("itm_u", "what is it?", protocol.ItemUserMessage)},
	{Type: protocol.EventItemCompleted, Item: item("itm_a", "It is.", protocol.ItemAgentMessage)},
	{Type: protocol.EventItemCompleted, Item: item("itm_a", "It is.", protocol.ItemAgentMessage)},
	{Type: protocol.EventTurnCompleted, TurnID: "trn_1", Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "It is."}},
	{Type: protocol.EventTurnStarted, TurnID: "trn_2"},
	{Type: protocol.EventPluginStatus, Name: protocol.ServerFailed, Text: "the MCP server x is not there"},
	{Type: protocol.EventPluginStatus, Name: "other", Text: "not shown"},
	{Type: protocol.EventTurnCompleted, TurnID: "trn_2", Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeIncomplete}},
}

func TestTranscript(t *testing.T) {
	want := []string{"› what is it?", "It is.", "› and then?", "· the MCP server x is not there", "· Turn failed (incomplete)"}
	for cut := range events {
		tr := newTranscript()
		var out []entry
		for _, e := range events[:cut] {
			out = append(out, tr.apply(e)...)
		}
		// The connection is lost here, and the session is attached again.
		tr.attached(&protocol.SessionAttachResult{TurnID: tr.turn})
		for _, e := range events[cut:] {
			out = append(out, tr.apply(e)...)
		}
		if got := texts(out); !slices.Equal(got, want) {
			t.Errorf("runtime/X03 after a reconnect before event %d it shows %q", cut, got)
		}
		if tr.turn != "" || len(tr.open) != 0 {
			t.Errorf("runtime/X03 at the end turn %q is running and %d items are open", tr.turn, len(tr.open))
		}
	}
	t.Run("runtime/X03 text that differs from the shown text replaces it from there", func(t *testing.T) {
		tr := newTranscript()
		for _, e := range []protocol.Event{
			{Type: protocol.EventItemStarted, Item: item("itm_a", "one two", protocol.ItemAgentMessage)},
			{Type: protocol.EventItemDelta, ItemID: "itm_a", Offset: new(4), Text: "three"},
			{Type: protocol.EventItemDelta, ItemID: "itm_a", Offset: new(40), Text: "after a gap"},
		} {
			tr.apply(e)
		}
		if got := tr.open[0].Text; got != "one three" {
			t.Errorf("it is %q", got)
		}
	})
	t.Run("runtime/X03 a decision is open until a client answers it", func(t *testing.T) {
		tr := newTranscript()
		d := &protocol.Decision{ID: "dec_1", Kind: protocol.DecisionApproval, Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject}}
		tr.apply(protocol.Event{Type: protocol.EventDecisionOpened, Decision: d})
		tr.apply(protocol.Event{Type: protocol.EventDecisionOpened, Decision: d})
		if got := tr.asked(); got == nil || len(tr.decisions) != 1 || Chosen(got, "y") != protocol.ChooseAllowOnce || Chosen(got, "a") != "" {
			t.Errorf("open decisions: %+v", tr.decisions)
		}
		answered := *d
		answered.Answer = &protocol.DecisionAnswer{Choice: protocol.ChooseReject}
		out := tr.apply(protocol.Event{Type: protocol.EventDecisionResolved, Decision: &answered})
		if got := texts(out); tr.asked() != nil || !slices.Equal(got, []string{"· Denied."}) {
			t.Errorf("it shows %q; open decisions: %+v", got, tr.decisions)
		}
	})
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct{ form, text, want string }{
		{``, `hello`, `"hello"`}, {``, `{"a":1}`, `{"a":1}`}, {`{"type":"string"}`, `12`, `"12"`}, {`{"type":"integer"}`, `12`, `12`},
		{`{"type":"object","properties":{"name":{"type":"string"}}}`, `12`, `{"name":"12"}`},
		{`{"type":"object","properties":{"name":{"type":"string"}}}`, `{"name":"x"}`, `{"name":"x"}`},
		{`{"type":"object","properties":{"yes":{"type":"boolean"}}}`, `true`, `{"yes":true}`},
	} {
		if got := answer(json.RawMessage(c.form), c.text); string(got) != c.want {
			t.Errorf("issue/6-4 %s to %s is %s, want %s", c.text, c.form, got, c.want)
		}
	}
}
