package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// rulesCommand has the subcommands of lash rules.
type rulesCommand struct {
	List   rulesListCommand   `cmd:"" default:"withargs" help:"List the approval rules that apply here (default)."`
	Test   rulesTestCommand   `cmd:"" help:"Show what lashd would do with a command or another tool call, and why."`
	Add    rulesAddCommand    `cmd:"" help:"Add an approval rule."`
	Remove rulesRemoveCommand `cmd:"" help:"Remove an approval rule, or an answer that covers later calls."`
}

// ofRules are the flags of commands about rules.
type ofRules struct {
	Session string `help:"Session whose rules to use; lash session lists the ids (default: none, only the rules of the user and of this directory)." placeholder:"ID"`
	console.InJSON
}

// rulesLink is a connection to the daemon, with the session whose rules the flags name, else the current directory.
type rulesLink struct {
	*daemon.Link
	session protocol.SessionID
	cwd     string
}

// dial connects to the daemon. The caller closes the connection.
func (o ofRules) dial(ctx context.Context, e *daemon.Environment) (*rulesLink, error) {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return nil, err
	}
	id, cwd, err := o.place(ctx, l)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &rulesLink{l, id, cwd}, nil
}

// place returns the session that the flags name, else the current directory.
func (o ofRules) place(ctx context.Context, l *daemon.Link) (id protocol.SessionID, cwd string, err error) {
	if o.Session != "" {
		id, err = sessionID(ctx, l, o.Session)
		return id, "", err
	}
	cwd, err = os.Getwd()
	if err == nil {
		cwd, err = pathresolve.Real(cwd)
	}
	return "", cwd, err
}

// rulesListCommand implements lash rules list.
type rulesListCommand struct{ ofRules }

// Help is shown by --help.
func (rulesListCommand) Help() string {
	return `If several rules match a call, the strictest one decides: deny, then ask, then allow.

Example: lash rules list`
}

// Run prints the rules of the user, of the workspace and of the session.
func (c rulesListCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer l.Close()
	r, err := l.rules(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	for _, problem := range r.Problems {
		e.Note("%s", problem)
	}
	if len(r.Data) == 0 {
		e.Note("there are no rules; lash rules add adds one")
		return nil
	}
	rows := [][]string{{"ID", "LEVEL", "RULE", "FROM"}}
	for _, rule := range r.Data {
		rows = append(rows, []string{orDash(rule.ID), string(rule.Level), ruleText(rule), rule.From})
	}
	return table(rows, "FROM", "LEVEL")
}

// rules asks the daemon for the rules that apply.
func (l *rulesLink) rules(ctx context.Context) (r protocol.RuleListResult, err error) {
	err = l.Call(ctx, "rule/list", protocol.RuleListParams{SessionID: l.session, Cwd: l.cwd}, &r)
	return r, err
}

// ruleText returns a rule as a person reads it.
func ruleText(l protocol.ListedRule) string {
	if l.Exact {
		return "allow exactly this call: " + strings.TrimSpace(l.Rule.Tool+" "+l.About)
	}
	return l.Rule.String()
}

// orDash returns text, or a dash if there is none.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// rulesTestCommand implements lash rules test.
type rulesTestCommand struct {
	What    string   `arg:"" help:"Command line; with --tool of a file tool, its path."`
	Tool    string   `help:"Tool that gets it." default:"shell" placeholder:"NAME"`
	Outside bool     `help:"The command would run outside the sandbox."`
	Host    []string `help:"Host that the command wants to reach." placeholder:"HOST"`
	ofRules
}

// Help is shown by --help.
func (rulesTestCommand) Help() string {
	return `Nothing runs. Without --session, the call is judged as in a new session in this directory.

Examples:
  lash rules test 'go test ./... && curl example.com'
  lash rules test --tool write docs/index.md`
}

// args returns the arguments of the call to judge.
func (c rulesTestCommand) args() json.RawMessage {
	about := map[string]any{"command": c.What}
	switch c.Tool {
	case "read", "write", "edit", "list", "glob", "grep":
		about = map[string]any{"path": c.What}
	}
	if c.Outside {
		about["outside"] = true
	}
	if len(c.Host) > 0 {
		about["hosts"] = c.Host
	}
	text, err := json.Marshal(about)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return text
}

// Run prints the decision, its reason, the rule with its level and, of several commands, those that decided.
func (c rulesTestCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer l.Close()
	var r protocol.RuleTestResult
	if err := l.Call(ctx, "rule/test", protocol.RuleTestParams{SessionID: l.session, Cwd: l.cwd, Tool: c.Tool, Args: c.args()}, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	rows := [][]string{{"Decision:", string(r.Decision)}, {"Reason:", r.Reason.Text}}
	if r.Reason.Rule != nil {
		rows = append(rows, []string{"Rule:", r.Reason.Rule.String() + " (" + string(r.Reason.Level) + ")"})
	}
	for _, text := range r.Deciding() {
		rows = append(rows, []string{"Command:", text})
	}
	if r.Sandbox != "" {
		rows = append(rows, []string{"Sandbox:", string(r.Sandbox)})
	}
	return properties(rows)
}

// ruleWords is a rule in plain words: deny command 'git push'.
type ruleWords struct {
	Action string   `arg:"" help:"allow, ask or deny." enum:"allow,ask,deny"`
	Words  []string `arg:"" help:"Subject of the rule: command, path or host with its value, or tool with a name or pattern, or tool and one of the others." placeholder:"WORD"`
}

// errRuleWords is the error for words that are no rule.
var errRuleWords = console.Exit(console.ExitUsage, errors.New("give the rule in words, such as: allow command 'go test', deny path '**/.env', ask host example.com, deny tool 'mcp_*'"))

// rule returns the rule that the words describe. The value of the last word may have several arguments: deny command git push.
func (w ruleWords) rule() (protocol.ApprovalRule, error) {
	r := protocol.ApprovalRule{Action: protocol.ApprovalMode(w.Action)}
	words := w.Words
	if len(words) > 2 && words[0] == "tool" {
		r.Tool, words = words[1], words[2:]
	}
	if len(words) < 2 {
		return r, errRuleWords
	}
	value := strings.Join(words[1:], " ")
	switch words[0] {
	case "command":
		r.Command = value
	case "path":
		r.Path = value
	case "host":
		r.Host = value
	case "tool":
		r.Tool = value
	default:
		return r, errRuleWords
	}
	return r, nil
}

// rulesAddCommand implements lash rules add.
type rulesAddCommand struct {
	ruleWords
	User      bool `help:"Store it in config.toml, for all workspaces." xor:"level"`
	Workspace bool `help:"Store it for this directory (default)." xor:"level"`
	ofRules
}

// Help is shown by --help.
func (rulesAddCommand) Help() string {
	return `With --session, the rule applies to that session from its next turn on. Other rules apply at once, also to running sessions.

Examples:
  lash rules add allow command 'go test'
  lash rules add deny path '**/.env'
  lash rules add --user ask host '*.example.com'`
}

// level returns the level that the flags name.
func (c rulesAddCommand) level() protocol.RuleLevel {
	switch {
	case c.User:
		return protocol.LevelUser
	case c.Session != "" && !c.Workspace:
		return protocol.LevelSession
	}
	return protocol.LevelWorkspace
}

// Run stores the rule and prints it.
func (c rulesAddCommand) Run(ctx context.Context, e *daemon.Environment) error {
	rule, err := c.rule()
	if err != nil {
		return err
	}
	l, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer l.Close()
	var r protocol.RuleAddResult
	if err := l.Call(ctx, "rule/add", protocol.RuleAddParams{Level: c.level(), Rule: rule, SessionID: l.session, Cwd: l.cwd}, &r); err != nil {
		return err
	}
	return c.print(r, "added", r.Rule)
}

// print prints what happened to a rule.
func (o ofRules) print(result any, verb string, rule protocol.ListedRule) error {
	if o.JSON {
		return console.PrintJSON(result)
	}
	return console.Say(fmt.Sprintf("%s: %s (%s, %s)", verb, ruleText(rule), rule.Level, rule.ID))
}

// rulesRemoveCommand implements lash rules remove.
type rulesRemoveCommand struct {
	Rule []string `arg:"" help:"Id from lash rules list, its beginning, or words of the rule that no other rule has."`
	ofRules
}

// Help is shown by --help.
func (rulesRemoveCommand) Help() string {
	return `Examples:
  lash rules remove deny path '**/.env'
  lash rules remove git push`
}

// Run removes the rule and prints it.
func (c rulesRemoveCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer l.Close()
	all, err := l.rules(ctx)
	if err != nil {
		return err
	}
	rule, err := findRule(all.Data, strings.Join(c.Rule, " "))
	if err != nil {
		return err
	}
	var r protocol.RuleRemoveResult
	if err := l.Call(ctx, "rule/remove", protocol.RuleRemoveParams{ID: rule.ID, SessionID: l.session}, &r); err != nil {
		return err
	}
	return c.print(r, "removed", r.Rule)
}

// leastRule is the least length of the beginning of an id that counts as one.
const leastRule = 4

// plainRule returns the text of a rule without the quotes that a shell removes.
func plainRule(text string) string { return strings.NewReplacer("'", "", `"`, "").Replace(text) }

// hasWords reports whether a rule contains words in their order.
func hasWords(rule, words string) bool {
	return strings.Contains(" "+plainRule(rule)+" ", " "+plainRule(words)+" ")
}

// findRule returns the only rule with that id, else with that text, else whose id begins with it, else with these words.
func findRule(all []protocol.ListedRule, text string) (found protocol.ListedRule, err error) {
	n := 0
	for _, fits := range []func(protocol.ListedRule) bool{
		func(l protocol.ListedRule) bool { return l.ID == text || plainRule(ruleText(l)) == plainRule(text) },
		func(l protocol.ListedRule) bool { return len(text) >= leastRule && begins(l.ID, "rul_", text) },
		func(l protocol.ListedRule) bool { return hasWords(ruleText(l), text) },
	} {
		for _, l := range all {
			if fits(l) {
				found, n = l, n+1
			}
		}
		if n > 0 {
			break
		}
	}
	switch {
	case n == 0:
		return found, console.Exit(console.ExitUsage, fmt.Errorf("no rule %q; lash rules list shows the rules", text))
	case n > 1:
		return found, console.Exit(console.ExitUsage, fmt.Errorf("%d rules fit %q; give the id of one, or more of its words; lash rules list shows them", n, text))
	case found.ID == "":
		return found, console.Exit(console.ExitUsage, fmt.Errorf("the rule %q is in %s; remove it there", text, found.From))
	}
	return found, nil
}
