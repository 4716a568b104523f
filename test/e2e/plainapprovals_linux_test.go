package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// plainDecision is what a client reads of an approval that knows nothing of its detail.
type plainDecision struct {
	ID       protocol.DecisionID       `json:"decisionId"`
	Prompt   string                    `json:"prompt"`
	Choices  []protocol.DecisionChoice `json:"choices"`
	ArgsHash protocol.Digest           `json:"argsHash"`
}

// TestClientsThatIgnoreDetail answers approvals as a client does that knows only their text and choices.
func TestClientsThatIgnoreDetail(t *testing.T) {
	w := newWorld(t, "ask")
	w.serve()
	p := w.dial("")
	id := p.session(w.home)
	asked := func(command string) (protocol.TurnID, plainDecision) {
		turn := p.start(id, commands(command)).TurnID
		p.questionOf(id)
		return turn, ask[struct {
			Data []plainDecision `json:"data"`
		}](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data[0]
	}
	answer := func(turn protocol.TurnID, d plainDecision, choice protocol.DecisionChoice) {
		ask[json.RawMessage](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: choice, ArgsHash: d.ArgsHash})
		p.wait(turn)
	}
	t.Run("part11/4 the text of an approval has the whole command", func(t *testing.T) {
		turn, d := asked("touch one && touch two")
		if !strings.Contains(d.Prompt, "touch one && touch two") {
			t.Errorf("the text is %q", d.Prompt)
		}
		answer(turn, d, protocol.ChooseReject)
		if _, err := os.Stat(filepath.Join(w.work, "one")); err == nil {
			t.Error("a rejected command ran")
		}
	})
	t.Run("part11/4 an answer for the session without a width covers exactly the call", func(t *testing.T) {
		turn, d := asked("touch three")
		answer(turn, d, protocol.ChooseAllowSession)
		p.turn(id, commands("touch three")) // without a question
		turn, d = asked("touch four")
		answer(turn, d, protocol.ChooseReject)
		if _, err := os.Stat(filepath.Join(w.work, "four")); err == nil {
			t.Error("another command ran")
		}
	})
	t.Run("part11/4 a call that changes a protected file can only be allowed once or denied", func(t *testing.T) {
		turn := p.start(id, fakemodel.ToolMarker("write", `{"path":".vscode/tasks.json","content":"x"}`)).TurnID
		p.questionOf(id)
		d := ask[struct {
			Data []plainDecision `json:"data"`
		}](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data[0]
		for _, c := range d.Choices {
			if c != protocol.ChooseAllowOnce && c != protocol.ChooseReject {
				t.Errorf("the choices are %q", d.Choices)
			}
		}
		answer(turn, d, protocol.ChooseReject)
	})
}
