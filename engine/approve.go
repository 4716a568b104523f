package engine

import (
	"encoding/json"
	"path"
	"slices"

	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// strictness orders what rules may say: the strictest that matches counts.
var strictness = map[protocol.ApprovalMode]int{protocol.ApproveAllow: 1, protocol.ApproveAsk: 2, protocol.ApproveDeny: 3}

// standing is an answer of a person that holds beyond its call: for calls of the same tool with the same arguments.
type standing struct {
	Tool string          `json:"tool"`
	Args protocol.Digest `json:"args"` // of all arguments but those that may vary
}

// standingOf is what an answer about a call holds for: other arguments are another call, unless the tool says that they vary.
func standingOf(name string, args json.RawMessage, varying []string) standing {
	var known map[string]json.RawMessage
	if json.Unmarshal(args, &known) != nil {
		return standing{name, protocol.DigestOf(args)} // no object: nothing in it has a name
	}
	for _, v := range varying {
		delete(known, v)
	}
	return standing{name, protocol.DigestOf(encode(known))}
}

// judge decides about a call: by the strictest rule that matches, else by the mode. A person's standing answers turn
// asking into allowing, never a denial.
func judge(cfg protocol.ApprovalConfig, answers []standing, cwd string, e *tool.Entry, args json.RawMessage) protocol.ApprovalMode {
	m, verdict := e.Manifest, protocol.ApprovalMode("")
	about := &subjects{cwd: cwd, entry: e, args: args}
	for _, r := range cfg.Rules {
		if action := about.action(r); strictness[action] > strictness[verdict] {
			verdict = action
		}
	}
	if verdict == "" {
		verdict = defaultMode(cfg.Mode, m.Kind)
	}
	if verdict == protocol.ApproveAsk && len(answers) > 0 && slices.Contains(answers, standingOf(m.Name, args, e.Terms().Varying)) {
		return protocol.ApproveAllow
	}
	return verdict
}

// defaultMode asks about tools that change things or of which nobody knows what they do.
func defaultMode(mode protocol.ApprovalMode, kind protocol.ToolKind) protocol.ApprovalMode {
	if mode != "" {
		return mode
	}
	switch kind {
	case protocol.ToolKindRead, protocol.ToolKindSearch, protocol.ToolKindThink:
		return protocol.ApproveAllow
	}
	return protocol.ApproveAsk
}

// ruleNames tells whether a rule is about a tool. What is not allowed with one tool is not allowed with another that does the
// same; what is allowed with one is not allowed with others.
func ruleNames(r protocol.ApprovalRule, m protocol.ToolManifest) bool {
	if ok, err := path.Match(r.Tool, m.Name); err == nil && ok {
		return true
	}
	ok, err := path.Match(r.Tool, m.Like)
	return err == nil && ok && m.Like != "" && r.Action != protocol.ApproveAllow
}

// standing are the answers that hold for a session: its own, and those given for its workspace.
func (st *state) standing() ([]standing, error) {
	always, err := st.eng.store.Approvals(st.ctx, st.row.Cwd)
	if err != nil {
		return nil, err
	}
	answers := slices.Clone(st.approved)
	for _, a := range always {
		answers = append(answers, standing{a.Tool, protocol.Digest(a.Subject)})
	}
	return answers, nil
}

// remember adds what a person allowed beyond the one call to the commit that stores the answer.
func (st *state) remember(c *persistence.Commit, d protocol.Decision, by string) []standing {
	if d.Kind != protocol.DecisionApproval {
		return st.approved
	}
	answer := standingOf(d.Call.Name, d.Call.Args, d.Varying)
	switch d.Answer.Choice {
	case protocol.ChooseAllowSession:
		approved := append(slices.Clip(st.approved), answer)
		c.Component = append(c.Component, persistence.Component{Name: componentApprovals, Body: encode(approved)})
		return approved
	case protocol.ChooseAllowAlways:
		c.Approve = []persistence.Approval{{Cwd: st.row.Cwd, Tool: answer.Tool, Subject: string(answer.Args), By: by}}
	}
	return st.approved
}
