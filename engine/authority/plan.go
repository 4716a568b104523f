package authority

import (
	"encoding/json"

	"lashd/rpc/protocol"
)

// The option of a session's configuration that enables plan mode: {"plan": {"mode": "plan"}}.
const (
	PlanOption = "plan"
	PlanMode   = "plan"
)

// Planning returns the read-only ceiling of a session in plan mode, or of one that was requested in plan mode;
// otherwise nil. The session passes it on to everything that it causes.
func Planning(c protocol.Config, held *protocol.Ceiling) *protocol.Ceiling {
	if !inPlanMode(c) && !deref(held).ReadOnly {
		return nil
	}
	return &protocol.Ceiling{ReadOnly: true}
}

// inPlanMode reports whether a configuration enables plan mode.
// An option that cannot be decoded does not enable it.
func inPlanMode(c protocol.Config) bool {
	var o struct {
		Mode string `json:"mode"`
	}
	return json.Unmarshal(c.Options[PlanOption], &o) == nil && o.Mode == PlanMode
}
