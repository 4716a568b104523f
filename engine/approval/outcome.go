package approval

import (
	"encoding/json"
	"fmt"
	"strings"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// OutcomeQuestion returns the decision that asks a person whether an interrupted call took effect, without ids and times. Its default
// is to tell the model that the outcome is unknown.
func OutcomeQuestion(call protocol.ToolCall) protocol.Decision {
	return protocol.Decision{
		Kind: protocol.DecisionOutcome, Default: protocol.ChooseTellModel,
		Prompt: fmt.Sprintf("lashd stopped while the tool %s was running with %s. Did the call take effect?", call.Name, termtext.Brief(call.Args)),
		Choices: []protocol.DecisionChoice{
			protocol.ChooseTellModel, protocol.ChooseHappened, protocol.ChooseNotHappened, protocol.ChooseRunAgain,
		},
	}
}

// Result returns the output that an answer gives to its call; nil if the call can start: the answer allows it, or asks to run it
// again.
func Result(a *protocol.DecisionAnswer) *protocol.ToolOutput {
	var out protocol.ToolOutput
	switch a.Choice {
	case protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseRunAgain:
		return nil
	case protocol.ChooseHappened:
		out = protocol.Succeed("The call was interrupted after it started. The user says that it took effect. Its output is lost.")
	case protocol.ChooseNotHappened:
		out = protocol.Fail(protocol.FailExecution, "not_executed", "The call was interrupted. The user says that it had no effect.", protocol.FromRuntime)
	case protocol.ChooseReject:
		out = protocol.Fail(protocol.FailPermission, "denied", rejection(a), protocol.FromPolicy)
	case protocol.ChooseCancelled:
		out = protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn was cancelled before the call was allowed"}
	default:
		out = protocol.ToolOutput{Status: protocol.OutputUnknown, Text: "The call started, then lashd was interrupted. " +
			"It is unknown whether the call took effect, and it was not run again. Check the current state before you repeat it."}
	}
	return &out
}

// Denial returns the result of a call of the named tool that policy refuses. The text is for the model: it says which policy it was
// and what to do instead.
func (v Verdict) Denial(name string) protocol.ToolOutput {
	if v.Planning {
		return protocol.Fail(protocol.FailPermission, "plan_mode", name+" was not called: the session is in plan mode, or a session in plan mode requested this. Plan mode allows only tools that read, search or think. "+
			"Add this step to the plan; only a person can end plan mode.", protocol.FromPolicy)
	}
	why := v.Why.Text
	if v.Beyond {
		why = "The session or plugin that requested this is not allowed to make the call."
	}
	return protocol.Fail(protocol.FailPermission, "denied", "The call was denied. "+why, protocol.FromPolicy)
}

// defaultAnswer returns the answer that an approval gets at its deadline. Everything but an
// explicit "allow" rejects the call.
func defaultAnswer(v Verdict) protocol.DecisionChoice {
	if v.Silence == protocol.ApproveAllow {
		return protocol.ChooseAllowOnce
	}
	return protocol.ChooseReject
}

// rejection returns, for the model, why a call was not allowed. It does not claim that a person said no: a client
// without a user may answer, too.
func rejection(a *protocol.DecisionAnswer) string {
	switch {
	case a.By == "deadline":
		return "The call was not allowed: the approval request expired without an answer."
	case a.Reason != "":
		return "The call was not allowed: the approval request was denied, with this reason: " + a.Reason
	}
	return "The call was not allowed: the approval request was denied."
}

// maxNoted limits the arguments that a note shows to the model, in bytes.
const maxNoted = 16 << 10

// Change is how a person changed a call before it ran. The journal stores it.
type Change struct {
	Hunks  bool   `json:"hunks,omitempty"`  // the person chose hunks of its diff; otherwise, the person edited its arguments
	Reason string `json:"reason,omitempty"` // why the other hunks were left out, in the words of the person
}

// ChangeOf returns how an answer changed the call that it allowed; nil if it did not.
func ChangeOf(a *protocol.DecisionAnswer) *Change {
	if a.Args == nil {
		return nil
	}
	return &Change{Hunks: a.Hunks != nil, Reason: a.Reason}
}

// Note returns the text for the model about a changed call, in front of its output. args are those with which it ran.
func (c *Change) Note(args json.RawMessage) string {
	text := legible.Replace(string(args))
	if n := len(text); n > maxNoted {
		text = fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:maxNoted], ""), n)
	}
	what := "A person changed the arguments of this call before it ran."
	switch {
	case c.Reason != "":
		what = "A person allowed only a part of the changes of this call, and denied the others with this reason: " + c.Reason + "\n"
	case c.Hunks:
		what = "A person allowed only a part of the changes of this call."
	}
	return "[" + what + " It ran with " + text + "]\n"
}

// legible undoes the escapes that make JSON safe in HTML. Escaped backslashes stay, so that what follows them is left alone.
var legible = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// Shown returns the content hash of each file whose change a decision shows; see tool.Invocation. A file that has no diff is left out.
func Shown(d *protocol.ApprovalDetail) map[string]protocol.Digest {
	shown := map[string]protocol.Digest{}
	if d != nil {
		for _, f := range d.Files {
			if f.Problem == "" {
				shown[f.Path] = f.Before
			}
		}
	}
	return shown
}
