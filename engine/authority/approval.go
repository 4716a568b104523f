package authority

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// strictness orders verdicts, laxest first. The empty verdict has strictness 0.
var strictness = map[protocol.ApprovalMode]int{protocol.ApproveAllow: 1, protocol.ApproveAsk: 2, protocol.ApproveDeny: 3}

// Strictest returns the strictest verdict; "" if there is none.
func Strictest(verdicts ...protocol.ApprovalMode) protocol.ApprovalMode {
	return slices.MaxFunc(append(verdicts, ""), func(a, b protocol.ApprovalMode) int { return cmp.Compare(strictness[a], strictness[b]) })
}

// modes orders modes, laxest first. The empty mode allows tools that only read and asks about all others.
var modes = map[protocol.ApprovalMode]int{protocol.ApproveAllow: 1, "": 2, protocol.ApproveAsk: 3, protocol.ApproveDeny: 4}

// Stricter returns an error that names the difference if a may allow something that b does not. It compares the
// configurations, not their effect on calls: it may report a difference that no call would show, but never misses one.
// A nil error means that a is at least as strict as b for each call.
func Stricter(a, b protocol.ApprovalConfig) error {
	if modes[a.Mode] < modes[b.Mode] {
		return fmt.Errorf("mode %q is laxer than %q", cmp.Or(a.Mode, "default"), cmp.Or(b.Mode, "default"))
	}
	for _, r := range a.Rules {
		opens := r.Action == protocol.ApproveAllow && b.Sandbox.Confines() // leaving the sandbox and hosts need a rule even if the mode allows all
		if !covered(r, b.Rules) && (opens || strictness[r.Action] < strictestOf(b.Mode)) {
			return fmt.Errorf("the new rule %q is laxer", r)
		}
	}
	for _, r := range b.Rules {
		if r.Action != protocol.ApproveAllow && !covered(r, a.Rules) {
			return fmt.Errorf("the rule %q is missing", r)
		}
	}
	if err := compareSandboxes(a, b); err != nil {
		return err
	}
	return compareSilence(a, b)
}

// compareSandboxes compares the sandbox modes. A sandbox also replaces questions, so a configuration without one can be stricter.
func compareSandboxes(a, b protocol.ApprovalConfig) error {
	wider := width[a.Sandbox] > width[b.Sandbox]
	if unasked := a.Sandbox.Confines() && !b.Sandbox.Confines() && a.Mode == ""; !wider && !unasked {
		return nil
	}
	return fmt.Errorf("the sandbox mode is %q instead of %q", cmp.Or(a.Sandbox, protocol.SandboxFullAccess), cmp.Or(b.Sandbox, protocol.SandboxFullAccess))
}

// width orders sandbox modes, narrowest first.
var width = map[protocol.SandboxMode]int{protocol.SandboxReadOnly: 1, protocol.SandboxWorkspace: 2, "": 3, protocol.SandboxFullAccess: 3}

// SandboxOf returns the narrowest sandbox mode of an approval configuration and of the policies in ceilings, which may be nil.
func SandboxOf(a protocol.ApprovalConfig, ceilings ...*protocol.Ceiling) protocol.SandboxMode {
	mode := a.Sandbox
	for _, c := range ceilings {
		for _, p := range deref(c).Policies {
			mode = Narrowest(mode, p.Approval.Sandbox)
		}
	}
	return mode
}

// Narrowest returns the narrowest of two sandbox modes.
func Narrowest(a, b protocol.SandboxMode) protocol.SandboxMode {
	if width[a] < width[b] {
		return a
	}
	return b
}

// strictestOf returns the strictest verdict that a mode can give.
func strictestOf(mode protocol.ApprovalMode) int {
	if mode == "" {
		return strictness[protocol.ApproveAsk]
	}
	return strictness[mode]
}

// covered reports whether a rule is among others, unchanged or with a stricter action. A rule that allows never stands
// for one that does not, because the subjects of the two are compared differently.
func covered(r protocol.ApprovalRule, rules []protocol.ApprovalRule) bool {
	return slices.ContainsFunc(rules, func(o protocol.ApprovalRule) bool {
		same := o
		same.Action = r.Action
		return same == r && (o.Action == r.Action || r.Action == protocol.ApproveAsk && o.Action == protocol.ApproveDeny)
	})
}

// errDefault means that silence allows a call in one configuration and not in the other.
var errDefault = errors.New("an unanswered question would allow the call")

// compareSilence compares the deadlines and defaults of unanswered questions.
// A deadline matters only if silence allows the call: then both a longer and a shorter one count
// as a difference.
func compareSilence(a, b protocol.ApprovalConfig) error {
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
