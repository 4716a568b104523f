package authority

import (
	"encoding/json"

	"lashd/rpc/protocol"
)

// The option of a session's configuration that puts the session in plan mode: {"plan": {"mode": "plan"}}.
const (
	PlanOption = "plan"
	PlanMode   = "plan"
)

// Planning is the ceiling of whoever asks from a session in plan mode, or from one that was asked for in plan mode; nil: it is neither.
// It is part of what the asker gives to all that it asks for.
func Planning(c protocol.Config, held *protocol.Ceiling) *protocol.Ceiling {
	if !plans(c) && !deref(held).ReadOnly {
		return nil
	}
	return &protocol.Ceiling{ReadOnly: true}
}

// plans tells whether a configuration is one of plan mode.
func plans(c protocol.Config) bool {
	var o struct {
		Mode string `json:"mode"`
	}
	return json.Unmarshal(c.Options[PlanOption], &o) == nil && o.Mode == PlanMode
}
