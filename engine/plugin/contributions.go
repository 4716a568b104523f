package plugin

import (
	"cmp"
	"slices"
)

// contributions are what the plugins of a session register, each list in the order of registration, with the methods that ask them.
type contributions struct {
	turnHooks
	turnInputs
	toolCallHooks
	toolSources
	outputHooks
	promptHooks
	contextHooks
	lifecycleHooks
	operations
	execution

	closed   []contribution[func() error]
	triggers triggers
	handlers map[handler]TaskFunc
	monitors []MonitorDeclaration
	driver   *contribution[Driver]
	protocol *contribution[ProtocolSession]
}

// contributionsTo are none yet, of plugins that are built.
func contributionsTo(r *roster) contributions {
	return contributions{
		turnHooks: turnHooks{plugins: r}, toolCallHooks: toolCallHooks{plugins: r}, toolSources: toolSources{plugins: r},
		outputHooks: outputHooks{plugins: r}, promptHooks: promptHooks{plugins: r}, contextHooks: contextHooks{plugins: r},
		lifecycleHooks: lifecycleHooks{plugins: r}, operations: operations{plugins: r}, execution: execution{plugins: r},
	}
}

// sort puts what has a priority in order. Equal priorities keep the order of registration.
func (c *contributions) sort() {
	slices.SortStableFunc(c.transforms, descending[ContextTransform])
	slices.SortStableFunc(c.compactors, descending[Compactor])
}

func descending[T any](a, b contribution[T]) int { return cmp.Compare(b.priority, a.priority) }
