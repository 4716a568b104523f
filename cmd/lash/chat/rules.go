package chat

import (
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// rulesUsage says how to change the rules.
const rulesUsage = "usage: /rules, /rules add [session|user] allow|ask|deny command|path|host|tool VALUE, /rules test COMMAND, /rules remove ID"

// rules lists the approval rules that apply to the session, or tries, adds or removes
// one. An added rule is one of the workspace unless a word says otherwise.
func rules(u *ui, rest string) tea.Cmd {
	word, rest, _ := strings.Cut(rest, " ")
	rest = strings.TrimSpace(rest)
	id := u.talk.session.ID
	switch {
	case word == "" || word == "list":
		return read(u, "rule/list", protocol.RuleListParams{SessionID: id}, ruleList)
	case word == "test" && rest != "":
		return read(u, "rule/test", protocol.RuleTestParams{SessionID: id, Command: unquoted(rest)}, ruleVerdict)
	case word == "add":
		return addRule(u, rest)
	case word == "remove" && rest != "":
		r := new(protocol.RuleRemoveResult)
		p := protocol.RuleRemoveParams{Mutation: key(), SessionID: id, ID: rest}
		return u.ask(&outgoing{method: "rule/remove", params: p, result: r, done: func() tea.Msg { return saidMsg("Removed: " + ruleText(r.Rule)) }})
	}
	return say("%s", rulesUsage)
}

// addRule adds the rule that words describe.
func addRule(u *ui, words string) tea.Cmd {
	level, rule, err := parseRule(words)
	if err != nil {
		return say("%v", err)
	}
	r := new(protocol.RuleAddResult)
	p := protocol.RuleAddParams{Mutation: key(), Level: level, Rule: rule, SessionID: u.talk.session.ID}
	if level == protocol.LevelUser {
		p.SessionID = ""
	}
	return u.ask(&outgoing{method: "rule/add", params: p, result: r, done: func() tea.Msg { return saidMsg("Added: " + ruleText(r.Rule)) }})
}

// parseRule returns the rule that words describe, such as "deny command git push". The
// value is the rest of the line.
func parseRule(words string) (level protocol.RuleLevel, r protocol.ApprovalRule, err error) {
	level = protocol.LevelWorkspace
	first, rest, _ := strings.Cut(words, " ")
	switch l := protocol.RuleLevel(first); l {
	case protocol.LevelUser, protocol.LevelSession, protocol.LevelWorkspace:
		level = l
		first, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	r.Action = protocol.ApprovalMode(first)
	kind, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	value = unquoted(value)
	into := map[string]*string{"command": &r.Command, "path": &r.Path, "host": &r.Host, "tool": &r.Tool}[kind]
	known := r.Action == protocol.ApproveAllow || r.Action == protocol.ApproveAsk || r.Action == protocol.ApproveDeny
	if into == nil || value == "" || !known {
		return level, r, errors.New(rulesUsage)
	}
	if strings.ContainsAny(value[:1], "'\"") {
		return level, r, errors.New("the value of the rule has one quote too many; write it without quotes: /rules add deny command git push")
	}
	*into = value
	return level, r, nil
}

// unquoted returns a value without the quotes around it, which a shell would remove.
func unquoted(value string) string {
	value = strings.TrimSpace(value)
	for _, quote := range []string{"'", `"`} {
		inner, begins := strings.CutPrefix(value, quote)
		inner, ends := strings.CutSuffix(inner, quote)
		if begins && ends && !strings.Contains(inner, quote) {
			return strings.TrimSpace(inner)
		}
	}
	return value
}

// ruleList describes the rules that apply, one below the other.
func ruleList(r *protocol.RuleListResult) string {
	lines := []string{"Rules for this session; of several that match, deny wins, then ask, then allow:"}
	if len(r.Data) == 0 {
		lines = []string{"There are no rules.", rulesUsage}
	}
	for _, l := range r.Data {
		lines = append(lines, fmt.Sprintf("  %-9s %s (%s)", l.Level, ruleText(l), origin(l)))
	}
	return strings.Join(append(lines, r.Problems...), "\n")
}

// ruleText returns a rule in words.
func ruleText(l protocol.ListedRule) string {
	if l.Exact {
		return "allow exactly this call: " + termtext.OneLine(l.Rule.Tool+" "+l.About, 200)
	}
	return termtext.OneLine(l.Rule.String(), 200)
}

// origin says where a rule comes from, and its id if it can be removed here.
func origin(l protocol.ListedRule) string {
	from := termtext.OneLine(l.From, 60)
	if l.ID == "" {
		return from
	}
	return from + ", " + termtext.OneLine(l.ID, 80)
}

// ruleVerdict describes what lashd would do with a call.
func ruleVerdict(r *protocol.RuleTestResult) string {
	lines := []string{"Decision: " + string(r.Decision), "Reason: " + r.Reason.Text}
	for _, text := range r.Deciding() {
		lines = append(lines, "Command that decides: "+termtext.OneLine(text, 300))
	}
	if r.Sandbox != "" {
		lines = append(lines, "Sandbox: "+string(r.Sandbox))
	}
	return strings.Join(lines, "\n")
}
