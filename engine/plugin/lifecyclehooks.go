package plugin

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// Failure is an error of one plugin that does not stop the operation.
type Failure struct {
	Plugin string
	Err    error
}

// lifecycleHooks are the hooks that follow the life of a session.
type lifecycleHooks struct {
	plugins   *roster
	lifecycle []contribution[LifecycleHook]
	mutators  []contribution[ConfigMutator]
}

// Listens reports whether any plugin registered a lifecycle hook.
func (l *lifecycleHooks) Listens() bool { return len(l.lifecycle) > 0 }

// Emit sends an event to all lifecycle hooks in parallel, waits for them, and returns the failures sorted by plugin id.
func (l *lifecycleHooks) Emit(ctx context.Context, event *LifecycleEvent) []Failure {
	errs := make([]error, len(l.lifecycle))
	var all sync.WaitGroup
	for i, h := range l.lifecycle {
		if tell := func() { errs[i] = l.tell(ctx, h, event) }; i < len(errs)-1 {
			all.Go(tell)
		} else {
			tell() // the last one needs no goroutine of its own
		}
	}
	all.Wait()
	var failed []Failure
	for i, err := range errs {
		if err != nil {
			failed = append(failed, Failure{l.lifecycle[i].plugin, err})
		}
	}
	slices.SortStableFunc(failed, func(a, b Failure) int { return cmp.Compare(a.Plugin, b.Plugin) })
	return failed
}

// tell calls one hook with a copy of the event and the capabilities for its kind.
func (l *lifecycleHooks) tell(ctx context.Context, h contribution[LifecycleHook], event *LifecycleEvent) error {
	kind := hookOf[event.Kind]
	_, err := probed(ctx, l.plugins, kind, h, func(do LifecycleHook) (struct{}, error) {
		mine := *event
		mine.Report, mine.Previous, mine.Current = own(event.Report), own(event.Previous), own(event.Current)
		mine.Host = event.Host.limit(kind)
		return struct{}{}, do(ctx, &mine)
	})
	return err
}

// hookOf maps an event to the hook name in errors and grants.
var hookOf = map[LifecycleKind]Hook{
	TurnFinalized: HookTurnFinalized, TurnPersisted: HookTurnPersisted,
	SessionRestored: HookSessionRestored, SessionConfigChanged: HookConfigChanged,
}

// MutateConfig passes current through the mutators and returns the result. A mutator that fails, or whose result would
// give the session more rights than it has, is skipped and reported as a Failure.
func (l *lifecycleHooks) MutateConfig(ctx context.Context, previous, current protocol.Config, host Capabilities) (protocol.Config, []Failure) {
	config := current
	var failed []Failure
	for _, h := range l.mutators {
		next, err := invoke(ctx, l.plugins, HookConfigMutator, h.plugin, func() (protocol.Config, error) {
			return h.do(ctx, &ConfigChange{own(previous), own(current), own(config), host.limit(HookConfigMutator)})
		})
		if err == nil {
			err = authority.Mutated(h.plugin, next, config)
		}
		if err != nil {
			failed = append(failed, Failure{h.plugin, err})
			continue
		}
		config = next
	}
	return config, failed
}
