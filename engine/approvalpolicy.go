package engine

import (
	"encoding/json"
	"path"
	"slices"

	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// standing is an answer of a person that holds beyond its call: for calls of the same tool with the same arguments, for as long as their
// paths lead where they led when the person was asked.
type standing struct {
	Tool string          `json:"tool"`
	Args protocol.Digest `json:"args"` // of all arguments but those that may vary, and of where paths led
}

// standingOf is what an answer about a call holds for: other arguments are another call, unless the tool says that they vary.
func standingOf(name string, args json.RawMessage, varying, places []string) standing {
	var known map[string]json.RawMessage
	if json.Unmarshal(args, &known) == nil { // otherwise it is no object, and nothing in it has a name
		for _, v := range varying {
			delete(known, v)
		}
		args = encode(known)
	}
	if len(places) > 0 {
		args = slices.Concat(args, encode(places))
	}
	return standing{name, protocol.DigestOf(args)}
}

// judging is a call as one policy sees it.
type judging struct {
	policy  protocol.Policy
	answers []standing
}

// of decides about a call of a tool: by the strictest rule that matches, else by the mode. A person's standing answers turn
// asking into allowing, never a denial.
func (q judging) of(about *subjects, kind protocol.ToolKind) protocol.ApprovalMode {
	verdict, sure := protocol.ApprovalMode(""), false
	about = about.ruledFrom(q.policy.Cwd)
	for _, r := range q.policy.Approval.Rules {
		action := about.action(r)
		sure = sure || action == r.Action
		verdict = authority.Strictest(verdict, action)
	}
	if !sure { // a rule that may deny makes nothing laxer than it is without one
		verdict = authority.Strictest(verdict, defaultMode(q.policy.Approval.Mode, kind))
	}
	if verdict == protocol.ApproveAsk && slices.Contains(q.answers, about.standing()) {
		return protocol.ApproveAllow
	}
	return verdict
}

// unclear asks about a call of a tool in the place of another one if a rule about that one's commands or paths could be about it, and
// nobody can tell.
func (q judging) unclear(e, there *subjects) protocol.ApprovalMode {
	stops := func(r protocol.ApprovalRule) bool {
		return r.Prefix != "" && r.Action != protocol.ApproveAllow && ruleNames(r, there.entry.Manifest)
	}
	if slices.ContainsFunc(q.policy.Approval.Rules, stops) && len(e.all)+len(there.all) == 0 {
		return protocol.ApproveAsk
	}
	return protocol.ApproveAllow
}

// defaultMode asks about tools that change things or of which nobody knows what they do.
func defaultMode(mode protocol.ApprovalMode, kind protocol.ToolKind) protocol.ApprovalMode {
	if mode != "" {
		return mode
	}
	if reads(kind) {
		return protocol.ApproveAllow
	}
	return protocol.ApproveAsk
}

// ruleNames tells whether a rule is about a tool. What is not allowed with one tool is not allowed with another that does the
// same; what is allowed with one is not allowed with others.
func ruleNames(r protocol.ApprovalRule, m protocol.ToolManifest) bool {
	named, _ := path.Match(r.Tool, m.Name) // what is no pattern is refused before
	like, _ := path.Match(r.Tool, m.Like)
	return named || like && r.Action != protocol.ApproveAllow
}

// always are the answers that were given for a workspace.
func (st *state) always(cwd string) ([]standing, error) {
	stored, err := st.eng.store.Approvals(st.ctx, cwd)
	answers := make([]standing, len(stored))
	for i, a := range stored {
		answers[i] = standing{a.Tool, protocol.Digest(a.Subject)}
	}
	return answers, err
}

// remember adds what a person allowed beyond the one call to the change that answers a decision.
func (st *state) remember(c *change.Change, d protocol.Decision, given *protocol.DecisionAnswer) {
	if d.Kind != protocol.DecisionApproval {
		return
	}
	answer := standingOf(d.Call.Name, d.Call.Args, d.Varying, d.Places)
	always := given.Choice == protocol.ChooseAllowAlways
	if always {
		c.Approve = []persistence.Approval{{Cwd: st.row.Cwd, Tool: answer.Tool, Subject: string(answer.Args), By: given.By}}
	}
	// The askers of the session may be of other workspaces, for which a person has said nothing.
	if given.Choice == protocol.ChooseAllowSession || always && st.row.Authority.Ceiling != nil {
		approved := append(slices.Clip(st.approved), answer)
		c.Component = append(c.Component, persistence.Component{Name: componentApprovals, Body: encode(approved)})
		c.Then(func() { st.approved = approved })
	}
}
