package protocol

// Authority is what a session was granted when it was created. It is stored with the session and given to it again whenever
// it is opened; whatever a session makes of itself or of its forks, it never has more.
type Authority struct {
	Tools    []string  `json:"tools,omitempty"`       // if any: exactly these tools exist, in this order
	NoTools  bool      `json:"noTools,omitempty"`     // no tool exists, whoever offers one; there is no list of tools then
	Hidden   []string  `json:"hiddenTools,omitempty"` // names that are in no catalog, whoever offers them
	Subagent *Subagent `json:"subagent,omitempty"`    // of a session that works for another
}

// Subagent says for whom a session works, and how deep it is below a session of a person.
type Subagent struct {
	Parent     SessionID `json:"parentSessionId"`
	Capability string    `json:"capability,omitempty"`
	Depth      int       `json:"depth"`
	MaxDepth   int       `json:"maxDepth"`
}
