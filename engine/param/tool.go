package param

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// CheckOverlay validates the tools of a client: names, ids, schemas, replay rules and
// deadlines. Names and ids must be unique within the overlay. A tool without an id has its
// name as id.
// Call it before the tools are registered: the registry relies on unique names and valid
// schemas.
func CheckOverlay(p *protocol.SessionOverlayParams) error {
	if len(p.Tools) > maxClientTools {
		return Bad("/tools", "has %d tools, at most %d", len(p.Tools), maxClientTools)
	}
	seen, ids := map[string]bool{}, map[string]bool{}
	for i, t := range p.Tools {
		pointer := "/tools/" + strconv.Itoa(i)
		if t.Name == "" || len(t.Name) > 64 || strings.ContainsFunc(t.Name, func(c rune) bool { return !IsIDRune(c) }) {
			return Bad(pointer+"/name", "must have 1 to 64 letters, digits, - and _")
		}
		if seen[t.Name] {
			return Bad(pointer+"/name", "%q occurs twice", t.Name)
		}
		id := cmp.Or(string(t.ID), t.Name)
		if ids[id] {
			return Bad(pointer+"/id", "%.200q occurs twice; a tool without an id has its name as id", id)
		}
		seen[t.Name], ids[id] = true, true
		if err := tool.CheckSchema(t.Input); err != nil {
			return Bad(pointer+"/input", "%v", err)
		}
		if t.Replay != "" && t.Replay != protocol.ReplayNever && t.Replay != protocol.ReplaySafe && t.Replay != protocol.ReplayIdempotent {
			return Bad(pointer+"/replay", "must be never, safe or idempotent")
		}
		if err := CheckWait(pointer+"/deadlineMs", t.DeadlineMs); err != nil {
			return err
		}
	}
	return nil
}

// CheckOutput validates the status of a tool result.
// Clients cannot report an unknown outcome: only lashd knows that a call was interrupted.
func CheckOutput(out *protocol.ToolOutput) error {
	if !slices.Contains([]protocol.OutputStatus{protocol.OutputSuccess, protocol.OutputFailure, protocol.OutputCancelled}, out.Status) {
		return Bad("/output/status", "must be success, failure or cancelled")
	}
	return nil
}

// CheckPayload validates the payload of a signal or an event against its declared schema.
// Without a schema everything is valid.
// pointer locates the payload in the request. A missing payload is invalid if there is a
// schema, even one that accepts null.
func CheckPayload(pointer string, schema, payload json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	if !json.Valid(payload) {
		return Bad(pointer, "is required, as JSON")
	}
	if err := tool.CheckValue(schema, payload); err != nil {
		return Bad(pointer, "%v", err)
	}
	return nil
}
