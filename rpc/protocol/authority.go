package protocol

// Authority limits what a session may use. It is set when the session is created, stored with it, and never grows, neither
// for the session nor for its forks.
type Authority struct {
	Tools    []string  `json:"tools,omitempty"`       // if set: the session has exactly these tools, in this order
	NoTools  bool      `json:"noTools,omitempty"`     // the session has no tools; tools must be empty
	Hidden   []string  `json:"hiddenTools,omitempty"` // tools with these names never appear in the catalog
	Subagent *Subagent `json:"subagent,omitempty"`    // set for the session of a subagent
	Ceiling  *Ceiling  `json:"ceiling,omitempty"`     // set if a plugin or another session requested the session: the requester's limits
}

// Ceiling holds the limits of a plugin or session that requested a session, an input or a task. The limits apply in addition to
// the session's own configuration, and no configuration removes them.
type Ceiling struct {
	Policies  []Policy `json:"policies,omitempty"`    // approval policies of the requesters; each decides every tool call, and the strictest decision counts
	Roots     []string `json:"roots,omitempty"`       // directories; the session's workspace must lie in all of them
	ReadOnly  bool     `json:"readOnly,omitempty"`    // a requester is in plan mode: only tools of the kinds read, search and think may be called; no commands or code run
	Sandboxed bool     `json:"sandboxed,omitempty"`   // a requester is in a sandbox: every call that could start a program outside it needs an approval
	Tools     []string `json:"tools,omitempty"`       // if set: no other tool may be called
	NoTools   bool     `json:"noTools,omitempty"`     // no tool may be called
	Hidden    []string `json:"hiddenTools,omitempty"` // tools that may not be called
}

// Policy is the approval configuration of a requester, with its directory and driver.
type Policy struct {
	Approval ApprovalConfig `json:"approval"`
	Cwd      string         `json:"cwd"`              // base directory of relative paths in the rules
	Driver   string         `json:"driver,omitempty"` // the requester's driver; sessions with another driver run no code cells
}

// Subagent describes a session that works for another session. Depth counts the sessions above it; a person's session has depth 0.
type Subagent struct {
	Parent     SessionID `json:"parentSessionId"`
	Capability string    `json:"capability,omitempty"`
	Depth      int       `json:"depth"`
	MaxDepth   int       `json:"maxDepth"`
}
