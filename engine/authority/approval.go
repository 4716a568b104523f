package authority

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// strictness orders what may become of a call.
var strictness = map[protocol.ApprovalMode]int{protocol.ApproveAllow: 1, protocol.ApproveAsk: 2, protocol.ApproveDeny: 3}

// Strictest is the strictest of several verdicts; the empty one is none.
func Strictest(verdicts ...protocol.ApprovalMode) protocol.ApprovalMode {
	return slices.MaxFunc(append(verdicts, ""), func(a, b protocol.ApprovalMode) int { return cmp.Compare(strictness[a], strictness[b]) })
}

// modes orders modes: without one, tools that only read are allowed and all others are asked about.
var modes = map[protocol.ApprovalMode]int{protocol.ApproveAllow: 1, "": 2, protocol.ApproveAsk: 3, protocol.ApproveDeny: 4}

// Stricter fails if an approval configuration may allow what another one does not, and says by what. It compares what both say:
// it may fail although no call would ever show a difference, never the reverse.
func Stricter(a, b protocol.ApprovalConfig) error {
	if modes[a.Mode] < modes[b.Mode] {
		return fmt.Errorf("the mode %q is laxer than %q", cmp.Or(a.Mode, "default"), cmp.Or(b.Mode, "default"))
	}
	for _, r := range a.Rules {
		if !known(r, b.Rules) && strictness[r.Action] < strictestOf(b.Mode) {
			return fmt.Errorf("the new rule for %q says %s", r.Tool, r.Action)
		}
	}
	for _, r := range b.Rules {
		if r.Action != protocol.ApproveAllow && !known(r, a.Rules) {
			return fmt.Errorf("the rule for %q that says %s is missing", r.Tool, r.Action)
		}
	}
	return patience(a, b)
}

// strictestOf is the strictest that a mode may say.
func strictestOf(mode protocol.ApprovalMode) int {
	if mode == "" {
		return strictness[protocol.ApproveAsk]
	}
	return strictness[mode]
}

// known tells whether a rule is among others, as it is or with a stricter action. One that allows is another one than those that do not:
// its prefix is compared in another way.
func known(r protocol.ApprovalRule, rules []protocol.ApprovalRule) bool {
	return slices.ContainsFunc(rules, func(o protocol.ApprovalRule) bool {
		return o.Tool == r.Tool && o.Prefix == r.Prefix && (o.Action == r.Action || r.Action == protocol.ApproveAsk && o.Action == protocol.ApproveDeny)
	})
}

var errDefault = errors.New("an unanswered question would allow the call")

// patience compares what becomes of questions that nobody answers.
func patience(a, b protocol.ApprovalConfig) error {
	switch {
	case a.Default != protocol.ApproveAllow:
		return nil
	case b.Default != protocol.ApproveAllow:
		return errDefault
	case a.DeadlineMs != b.DeadlineMs:
		return errors.New("the deadline after which an unanswered question allows the call differs")
	}
	return nil
}
