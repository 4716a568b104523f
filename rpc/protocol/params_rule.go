package protocol

import "encoding/json"

// RuleListParams names the session or the directory whose rules are listed. Without both, only rules of the user are listed.
type RuleListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"`
	Cwd       string    `json:"cwd,omitempty"` // absolute
}

// RuleListResult lists the rules that apply, and what is wrong with the files that have some.
type RuleListResult struct {
	Data     []ListedRule `json:"data"`
	Problems []string     `json:"problems,omitempty"` // one sentence each, such as the error in a file; its earlier rules still apply, or lashd asks
}

// ListedRule is an approval rule and where it comes from.
type ListedRule struct {
	ID    string       `json:"ruleId,omitempty"` // for rule/remove; absent: only the file can be changed
	Level RuleLevel    `json:"level"`
	Rule  ApprovalRule `json:"rule"`
	From  string       `json:"from"`            // config.toml, .agents/rules.toml, .claude/settings.json, lashd for a stored rule of the workspace, settings for those of a session, or answer
	Exact bool         `json:"exact,omitempty"` // an answer for exactly one call of the rule's tool, with the arguments of that call
	About string       `json:"about,omitempty"` // with exact: the arguments of the call in one line, for people; up to 200 characters
	By    string       `json:"by,omitempty"`    // client that answered
}

// RuleTestParams describes a call that is judged and not made. Without a session, a new session in cwd with default settings is assumed,
// which knows only lashd's own tools.
type RuleTestParams struct {
	SessionID SessionID       `json:"sessionId,omitempty"`
	Cwd       string          `json:"cwd,omitempty"`
	Tool      string          `json:"tool,omitempty"` // absent: shell
	Args      json.RawMessage `json:"args,omitempty"`
	Command   string          `json:"command,omitempty"` // instead of args: the command line of the call
	Path      string          `json:"path,omitempty"`    // instead of args: the path of the call
}

// RuleTestResult is what lashd would do with a call.
type RuleTestResult struct {
	Decision ApprovalMode      `json:"decision"`
	Reason   ApprovalReason    `json:"reason"`
	Commands []DecidingCommand `json:"commands,omitempty"` // of a line with several simple commands, if it is not allowed: those that decided
	Sandbox  SandboxMode       `json:"sandbox,omitempty"`  // the sandbox in which the command would run; absent: none
}

// DecidingCommand is a simple command for which the decision alone is the same as for its line, and the reason of that.
type DecidingCommand struct {
	Command string         `json:"command"`
	Reason  ApprovalReason `json:"reason"`
}

// Deciding returns the commands that decided, one line each, with their reasons where these differ from that of the line.
func (r *RuleTestResult) Deciding() (lines []string) {
	for _, c := range r.Commands {
		if c.Reason.Text != r.Reason.Text {
			c.Command += " (" + c.Reason.Text + ")"
		}
		lines = append(lines, c.Command)
	}
	return lines
}

// RuleAddParams stores a rule. A rule of a session applies from its next turn on, others at once.
type RuleAddParams struct {
	Mutation
	Level     RuleLevel    `json:"level"`
	Rule      ApprovalRule `json:"rule"`
	SessionID SessionID    `json:"sessionId,omitempty"` // of level session; of level workspace instead of cwd
	Cwd       string       `json:"cwd,omitempty"`       // of level workspace: absolute
}

// RuleAddResult has the stored rule.
type RuleAddResult struct {
	Rule ListedRule `json:"rule"`
	Replayable
}

// RuleRemoveParams removes a rule or an answer that rule/list shows.
type RuleRemoveParams struct {
	Mutation
	ID        string    `json:"ruleId"`
	SessionID SessionID `json:"sessionId,omitempty"` // of a rule of level session
}

// RuleRemoveResult has the removed rule.
type RuleRemoveResult struct {
	Rule ListedRule `json:"rule"`
	Replayable
}
