package protocol

// Authority is what a session was granted when it was created. It is stored with the session and given to it again whenever
// it is opened; whatever a session makes of itself or of its forks, it never has more.
type Authority struct {
	Tools    []string  `json:"tools,omitempty"`       // if any: exactly these tools exist, in this order
	NoTools  bool      `json:"noTools,omitempty"`     // no tool exists, whoever offers one; there is no list of tools then
	Hidden   []string  `json:"hiddenTools,omitempty"` // names that are in no catalog, whoever offers them
	Subagent *Subagent `json:"subagent,omitempty"`    // of a session that works for another
	Ceiling  *Ceiling  `json:"ceiling,omitempty"`     // of a session that a plugin or another session asked for: what that one may do
}

// Ceiling limits a session, an input or a task that a plugin or another session asked for to what the asker may do. It applies
// beside the session's own configuration, and no configuration lifts it.
type Ceiling struct {
	Policies  []Policy `json:"policies,omitempty"`    // of the askers: each decides about a tool call, and the strictest decision counts
	Roots     []string `json:"roots,omitempty"`       // directories: the session's workspace is in all of them
	ReadOnly  bool     `json:"readOnly,omitempty"`    // an asker is in plan mode: only tools that are known to read, search or think may be called, and no commands or code run
	Sandboxed bool     `json:"sandboxed,omitempty"`   // an asker is in a sandbox: a person is asked about each call that could start a program outside it
	Tools     []string `json:"tools,omitempty"`       // if any: no other tool may be called
	NoTools   bool     `json:"noTools,omitempty"`     // no tool may be called
	Hidden    []string `json:"hiddenTools,omitempty"` // names of tools that may not be called
}

// Policy is the approval configuration of an asker, with what it refers to.
type Policy struct {
	Approval ApprovalConfig `json:"approval"`
	Cwd      string         `json:"cwd"`              // paths in the rules are relative to it
	Driver   string         `json:"driver,omitempty"` // of the asker: a session of another driver runs no code cells
}

// Subagent says for whom a session works, and how deep it is below a session of a person.
type Subagent struct {
	Parent     SessionID `json:"parentSessionId"`
	Capability string    `json:"capability,omitempty"`
	Depth      int       `json:"depth"`
	MaxDepth   int       `json:"maxDepth"`
}
