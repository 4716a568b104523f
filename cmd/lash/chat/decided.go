package chat

import (
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// decidedText says in a sentence or two how a call was decided and why; "" without a decision.
func decidedText(d *protocol.CallDecision) string {
	if d == nil {
		return ""
	}
	why := termtext.OneLine(d.Why.Text, 400)
	switch {
	case d.By == "deadline":
		return map[protocol.ApprovalMode]string{protocol.ApproveAllow: "Allowed", protocol.ApproveDeny: "Denied"}[d.Mode] + ", because no answer came in time. Reason for the question: " + why
	case deniedByAnswer(d):
		return answeredText(d)
	case d.Choice != "":
		return answeredText(d) + " Reason for the question: " + why
	case d.Why.By == protocol.DecidedByPreview:
		return "Not run: " + why
	case d.Mode == protocol.ApproveDeny:
		return "Denied: " + why
	}
	return "Allowed: " + why
}

// answeredText says what a person answered.
func answeredText(d *protocol.CallDecision) string {
	switch {
	case d.Choice == protocol.ChooseAllowSession:
		return "A person allowed it for the session."
	case d.Choice == protocol.ChooseAllowAlways:
		return "A person always allows it."
	case d.Reason != "":
		return "A person denied it: " + termtext.OneLine(d.Reason, 400)
	case d.Mode == protocol.ApproveDeny:
		return "A person denied it."
	}
	return "A person allowed it once."
}

// deniedByAnswer reports whether an answer to a question denied a call. Its message for the model
// then says nothing new to people.
func deniedByAnswer(d *protocol.CallDecision) bool {
	return d != nil && d.Mode == protocol.ApproveDeny && d.Choice != "" && d.By != "deadline"
}
