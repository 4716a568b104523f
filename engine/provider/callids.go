package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// Sanitize replaces invalid UTF-8 in a reply and drops replay values that are not JSON, in place. The store keeps
// replies as JSON; without this, clients would read a different reply after a reload than the one they saw.
func Sanitize(parts []protocol.Part) {
	for i := range parts {
		parts[i].Text = strings.ToValidUTF8(parts[i].Text, "\uFFFD")
		if len(parts[i].Replay) > 0 && !json.Valid(parts[i].Replay) {
			parts[i].Replay, parts[i].Route = nil, ""
		}
	}
}

// NameCalls gives each tool call of a reply an id that is unique in the turn. It keeps the id of the model unless
// it is empty, used before, or contains a slash: nested calls have ids with slashes, and an approval for one must
// not apply to the other. Arguments that are not JSON become a JSON string, which argument validation then
// refuses. parts is changed in place; the calls in it belong to the provider and are replaced, not changed.
// The made ids depend only on the turn, the iteration and the index, so the same reply gets the same ids again.
// Each call also gets the title of its tool among tools.
func NameCalls(id protocol.TurnID, iteration int, tools []protocol.ToolManifest, parts []protocol.Part, before []protocol.Message) {
	if !slices.ContainsFunc(parts, func(p protocol.Part) bool { return p.Call != nil }) {
		return
	}
	used := map[protocol.CallID]bool{}
	for i := range before {
		for _, c := range before[i].Calls() {
			used[c.CallID] = true
		}
	}
	for i := range parts {
		if parts[i].Call == nil {
			continue
		}
		call := *parts[i].Call
		if call.CallID == "" || used[call.CallID] || strings.Contains(string(call.CallID), "/") {
			call.CallID = protocol.CallID(fmt.Sprintf("call_%s_%d_%d", strings.TrimPrefix(string(id), "trn_"), iteration, i))
		}
		call.Args, call.ToolTitle = Arguments(call.Args), titleOf(tools, call.Name)
		used[call.CallID] = true
		parts[i].Call = &call
	}
}

// titleOf returns the title of a tool; "" if it has none.
func titleOf(tools []protocol.ToolManifest, name string) string {
	for i := range tools {
		if tools[i].Name == name {
			return tools[i].Title
		}
	}
	return ""
}
