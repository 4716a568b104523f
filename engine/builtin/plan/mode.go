package plan

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

const planOnly = `# Plan mode
This session plans. Only tools that read, search or think can be called; everything else is denied. Find out what you need,
write the plan with update_plan, and then present it. Do not try to carry it out: a person ends plan mode first.`

// safe are the kinds of tools that change nothing.
var safe = []protocol.ToolKind{protocol.ToolKindRead, protocol.ToolKindSearch, protocol.ToolKindThink}

// kinds knows which tools are safe: those that were in every listing of their name.
type kinds struct {
	mu   sync.Mutex
	safe map[string]bool
}

// learn looks at all tools there are, and leaves none out. A name that once was that of an unsafe tool stays unsafe: which
// listing a call goes by is not known here.
func (k *kinds) learn(c plugin.CatalogContext) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.safe == nil {
		k.safe = map[string]bool{}
	}
	for _, m := range c.Manifests {
		before, known := k.safe[m.Name]
		k.safe[m.Name] = slices.Contains(safe, m.Kind) && (before || !known)
	}
	return nil, nil
}

// check denies calls of tools that are not known to be safe.
func (k *kinds) check(_ context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.safe[tc.Tool] {
		return nil, nil
	}
	reason := fmt.Sprintf("%s was not called: the session is in plan mode, where only tools that read, search or think are. "+
		"Put the step into the plan; a person ends plan mode.", tc.Tool)
	return []plugin.Directive{plugin.ShortCircuit(protocol.Fail(protocol.FailPermission, "plan_mode", reason, protocol.FromPlugin))}, nil
}
