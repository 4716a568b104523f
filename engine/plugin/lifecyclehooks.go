package plugin

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// Failure is a plugin that failed where that stops nothing.
type Failure struct {
	Plugin string
	Err    error
}

// lifecycleHooks follow a session's life.
type lifecycleHooks struct {
	plugins   *roster
	lifecycle []contribution[LifecycleHook]
	mutators  []contribution[ConfigMutator]
}

// Listens tells whether anybody wants to know of lifecycle events.
func (l *lifecycleHooks) Listens() bool { return len(l.lifecycle) > 0 }

// Emit tells all hooks of an event at once, waits for them, and gives those that failed in the order of their ids.
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

var hookOf = map[LifecycleKind]Hook{
	TurnFinalized: HookTurnFinalized, TurnPersisted: HookTurnPersisted,
	SessionRestored: HookSessionRestored, SessionConfigChanged: HookConfigChanged,
}

// MutateConfig is current as the mutators leave it. One that fails, or would give the session more than it has, is left out, and told of.
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
