package chat

import (
	"testing"

	"lashd/rpc/protocol"
)

func TestAnswersByLetterAndWord(t *testing.T) {
	approval := []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject}
	outcome := []protocol.DecisionChoice{protocol.ChooseTellModel, protocol.ChooseHappened, protocol.ChooseNotHappened, protocol.ChooseRunAgain}
	question := []protocol.DecisionChoice{protocol.ChooseAnswer, protocol.ChooseReject}
	for _, c := range []struct {
		choices []protocol.DecisionChoice
		line    string
		want    protocol.DecisionChoice
	}{
		{approval, "yes", protocol.ChooseAllowOnce}, {approval, "Y", protocol.ChooseAllowOnce}, {approval, "NO", protocol.ChooseReject},
		{approval, "Always", protocol.ChooseAllowAlways}, {approval, "session", protocol.ChooseAllowSession}, {approval, "n", protocol.ChooseReject},
		{approval, "yes, but", ""}, {approval, "", ""}, {approval, "happened", ""},
		{outcome, "didNotRun", protocol.ChooseNotHappened}, {outcome, "t", protocol.ChooseTellModel}, {outcome, "yes", ""},
		{question, "no", ""}, {question, "n", protocol.ChooseReject},
	} {
		if got := Chosen(&protocol.Decision{Choices: c.choices}, c.line); got != c.want {
			t.Errorf("issue/6-4 %q to %v means %q, want %q", c.line, c.choices, got, c.want)
		}
	}
}
