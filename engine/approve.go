package engine

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

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
	for _, r := range cfg.Rules {
		if ruleMatches(r, cwd, m, args) && strictness[r.Action] > strictness[verdict] {
			verdict = r.Action
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

// ruleMatches tells whether a rule is about a call. A rule that allows by prefix does not match a command that a shell
// would take apart: what comes after a separator has nothing to do with the prefix.
func ruleMatches(r protocol.ApprovalRule, cwd string, m protocol.ToolManifest, args json.RawMessage) bool {
	if !ruleNames(r, m) {
		return false
	}
	if r.Prefix == "" {
		return true
	}
	command, file := subjectOf(args)
	switch {
	case r.Action == protocol.ApproveAllow && strings.ContainsAny(command+file, ";&|<>`$()\n\\"):
		return false
	case command != "":
		rest, ok := strings.CutPrefix(command, r.Prefix)
		return ok && (rest == "" || rest[0] == ' ' || rest[0] == '/' || strings.HasSuffix(r.Prefix, "/"))
	}
	return file != "" && rulePlaces(r, cwd, file)
}

// rulePlaces tells whether a rule is about a path: it is that of the rule, or lies below. A rule that allows wants that of whatever
// the path may mean; for one that asks or denies anything that it may mean is enough, and so is that nobody can tell.
func rulePlaces(r protocol.ApprovalRule, cwd, file string) bool {
	at, rule := places(cwd, file), places(cwd, r.Prefix)
	if r.Action == protocol.ApproveAllow {
		return inAll(at, rule)
	}
	return at == nil || rule == nil || inAny(caseless(at), caseless(rule))
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

// subjectOf is what a rule with a prefix is compared with: the command of a call, or else its path.
func subjectOf(args json.RawMessage) (command, file string) {
	// Not a struct: its fields would take keys of another case, which a tool does not.
	known := map[string]json.RawMessage{}
	if json.Unmarshal(args, &known) == nil {
		_ = json.Unmarshal(known["command"], &command) // what is no text is no subject
		_ = json.Unmarshal(known["path"], &file)
	}
	return strings.TrimSpace(command), file
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
