package param

import (
	"encoding/json"
	"slices"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// maxReason limits the text that a rejection carries to the model, in bytes.
const maxReason = 8 << 10

// CheckAnswer checks an answer against the open decision that it answers. It does not judge changed arguments, and does not know
// whether files still are as the decision shows them.
func CheckAnswer(d *protocol.Decision, p *protocol.DecisionRespondParams) error {
	if d.Kind == protocol.DecisionCompletion {
		return Bad("/decisionId", "names a deferred tool call; answer it with tool/complete")
	}
	if !slices.Contains(d.Choices, p.Choice) {
		return NotOneOf("/choice", d.Choices)
	}
	if d.Kind == protocol.DecisionApproval && p.Choice != protocol.ChooseReject && p.ArgsHash != d.ArgsHash {
		return Bad("/argsHash", "must be the decision's argsHash from decision/list: an approval covers exactly those arguments")
	}
	if err := tool.CheckValue(d.Form, p.Value); err != nil && p.Choice == protocol.ChooseAnswer {
		return Bad("/value", "does not fit the decision's form: %v", err)
	}
	detail := d.Detail
	if detail == nil {
		detail = &protocol.ApprovalDetail{}
	}
	return firstError(checkArgs(detail, p), checkHunks(detail, p), checkWidth(detail, p), checkReason(d.Kind, detail, p))
}

// firstError returns the first of several errors that is not nil.
func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkArgs checks that the decision accepts changed arguments.
func checkArgs(detail *protocol.ApprovalDetail, p *protocol.DecisionRespondParams) error {
	var object map[string]json.RawMessage
	switch {
	case p.Args == nil:
		return nil
	case p.Choice != protocol.ChooseAllowOnce:
		return Bad("/args", "belongs to the choice allowOnce: an answer for more than one call covers the arguments that the decision shows")
	case p.Hunks != nil:
		return Bad("/args", "must not come with hunks: send one of them")
	case !detail.Editable:
		return Bad("/args", "this decision accepts no changed arguments (detail.editable is not set)")
	case json.Unmarshal(p.Args, &object) != nil || object == nil:
		return Bad("/args", "must be a JSON object")
	}
	return nil
}

// checkHunks checks that hunks of the decision's diff are chosen, each once.
func checkHunks(detail *protocol.ApprovalDetail, p *protocol.DecisionRespondParams) error {
	n := hunks(detail)
	switch {
	case p.Hunks == nil:
		return nil
	case p.Choice != protocol.ChooseAllowOnce:
		return Bad("/hunks", "belongs to the choice allowOnce: an answer for more than one call covers the arguments that the decision shows")
	case !detail.Editable || n == 0:
		return Bad("/hunks", "this decision has no hunks to choose from")
	case slices.ContainsFunc(detail.Files, func(f protocol.FilePreview) bool { return f.Cut }):
		return Bad("/hunks", "the diff of this decision is incomplete, so its hunks cannot be chosen; allow or reject the whole call")
	case len(p.Hunks) == 0:
		return Bad("/hunks", "must name a hunk; to make none of the changes, send the choice reject")
	}
	for i, at := range p.Hunks {
		if at < 0 || at >= n || slices.Contains(p.Hunks[:i], at) {
			return Bad("/hunks", "must be different indexes from 0 to %d", n-1)
		}
	}
	return nil
}

// hunks counts the hunks of all files.
func hunks(detail *protocol.ApprovalDetail) (n int) {
	for _, f := range detail.Files {
		n += len(f.Hunks)
	}
	return n
}

// checkWidth checks the index of a width.
func checkWidth(detail *protocol.ApprovalDetail, p *protocol.DecisionRespondParams) error {
	switch {
	case p.Width == nil:
		return nil
	case p.Choice != protocol.ChooseAllowSession && p.Choice != protocol.ChooseAllowAlways:
		return Bad("/width", "belongs to the choices allowSession and allowAlways")
	case len(detail.Widths) == 0:
		return Bad("/width", "this decision offers no widths; without a width, the answer covers exactly this call")
	case *p.Width < 0 || *p.Width >= len(detail.Widths):
		return Bad("/width", "must be an index into detail.widths, from 0 to %d", len(detail.Widths)-1)
	}
	return nil
}

// checkReason checks that a reason comes with a rejection of a call, or of some of its changes.
func checkReason(kind protocol.DecisionKind, detail *protocol.ApprovalDetail, p *protocol.DecisionRespondParams) error {
	switch {
	case p.Reason == "":
		return nil
	case kind != protocol.DecisionApproval || p.Choice != protocol.ChooseReject && p.Hunks == nil:
		return Bad("/reason", "belongs to the choice reject of an approval, or to hunks that leave out changes")
	case p.Hunks != nil && len(p.Hunks) == hunks(detail):
		return Bad("/reason", "is of no use: the hunks leave out no change")
	case len(p.Reason) > maxReason:
		return Bad("/reason", "has %d bytes; the limit is %d", len(p.Reason), maxReason)
	}
	return nil
}
