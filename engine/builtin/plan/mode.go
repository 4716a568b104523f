package plan

import (
	"context"
	"fmt"
	"slices"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

const planOnly = `# Plan mode
This session plans. Only tools that read, search or think can be called; everything else is denied. Find out what you need,
write the plan with update_plan, and then present it. Do not try to carry it out: a person ends plan mode first.`

// safe are the kinds of tools that change nothing.
var safe = []protocol.ToolKind{protocol.ToolKindRead, protocol.ToolKindSearch, protocol.ToolKindThink}

// check denies calls of tools that are not known to be safe.
func check(_ context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
	if slices.Contains(safe, tc.Kind) {
		return nil, nil
	}
	reason := fmt.Sprintf("%s was not called: the session is in plan mode, where only tools that read, search or think are. "+
		"Put the step into the plan; a person ends plan mode.", tc.Tool)
	return []plugin.Directive{plugin.ShortCircuit(protocol.Fail(protocol.FailPermission, "plan_mode", reason, protocol.FromPlugin))}, nil
}
