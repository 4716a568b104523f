package plugin

import (
	"cmp"
	"slices"
)

// contributions hold everything that the plugins of one session registered, in the order of registration. Each embedded
// part owns the hooks of one subject and the methods that call them. After Session.open has sorted them they are
// read-only, so they need no lock.
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

	closed   []contribution[func() error] // Session.Closed hooks, run in reverse order
	triggers triggers
	handlers map[handler]TaskFunc
	monitors []MonitorDeclaration           // declared by plugins; started by the engine when the session opens
	driver   *contribution[Driver]          // exactly one once the session is open
	protocol *contribution[ProtocolSession] // nil: the driver's plugin registered no protocol session
}

// contributionsTo returns empty contributions whose parts share the roster r.
func contributionsTo(r *roster) contributions {
	return contributions{
		turnHooks: turnHooks{plugins: r}, toolCallHooks: toolCallHooks{plugins: r}, toolSources: toolSources{plugins: r},
		outputHooks: outputHooks{plugins: r}, promptHooks: promptHooks{plugins: r}, contextHooks: contextHooks{plugins: r},
		lifecycleHooks: lifecycleHooks{plugins: r}, operations: operations{plugins: r}, execution: execution{plugins: r},
	}
}

// sort orders the hooks that have a priority. Equal priorities keep the order of registration.
func (c *contributions) sort() {
	slices.SortStableFunc(c.transforms, descending[ContextTransform])
	slices.SortStableFunc(c.compactors, descending[Compactor])
}

func descending[T any](a, b contribution[T]) int { return cmp.Compare(b.priority, a.priority) }
