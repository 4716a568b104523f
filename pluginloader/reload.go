package pluginloader

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// BusyError rejects a reload that must not happen during a turn.
type BusyError struct{ TurnID protocol.TurnID }

// Error says which turn is running and what to do.
func (e *BusyError) Error() string {
	return fmt.Sprintf("turn %s is running; wait for its end, or set whenBusy to queue: sessions then use the change from their next turn on", e.TurnID)
}

// Reload implements plugin/reload. It scans the directories now, without waiting for the watcher,
// and returns what changed. With DryRun it only returns what would change. With WhenBusy set to
// refuse it fails with a *BusyError while a turn runs.
func (l *Loader) Reload(ctx context.Context, p *protocol.PluginReloadParams) (*protocol.PluginReloadResult, error) {
	if p.WhenBusy == protocol.BusyRefuse {
		if id, runs := l.config.Running(); runs {
			return nil, &BusyError{id}
		}
	}
	cwd, err := l.workspace(p.Cwd)
	if err != nil {
		return nil, err
	}
	if _, err := l.setOf(ctx, cwd); err != nil { // makes the workspace known
		return nil, err
	}
	before, err := do(ctx, l, func(context.Context) (map[string]held, error) { return l.contents(cwd), nil })
	if err != nil {
		return nil, err
	}
	after := func() map[string]held { return l.contents(cwd) }
	if p.DryRun {
		planned, err := l.planned(ctx, cwd, before)
		if err != nil {
			return nil, err
		}
		after = func() map[string]held { return planned }
	} else if err := l.refresh(ctx, cwd); err != nil {
		return nil, err
	}
	return do(ctx, l, func(context.Context) (*protocol.PluginReloadResult, error) {
		return l.compare(cwd, before, after()), nil
	})
}

// concerned returns the sets that a request with cwd is about: the user's and that of the
// workspace. An empty cwd means all sets.
func (l *Loader) concerned(cwd string) (all []*set) {
	for _, s := range l.sets() {
		if cwd == "" || s.scope == protocol.ScopeUser || s.cwd == cwd {
			all = append(all, s)
		}
	}
	return all
}

// refresh scans everything again and waits for the result. It includes plugins that failed, and the
// files outside workspace plugins, whose changes the watcher does not see. It also ends
// quarantines, because the user may have fixed the cause.
func (l *Loader) refresh(ctx context.Context, cwd string) error {
	looked := make(chan struct{})
	_, err := do(ctx, l, func(ctx context.Context) (struct{}, error) {
		all := l.concerned(cwd)
		left := len(all)
		for _, s := range all {
			for _, e := range s.entries {
				if e.info.Status != protocol.PluginLoaded || s.scope == protocol.ScopeWorkspace {
					e.ask()
				}
				e.resume(ctx)
				l.notify(e)
			}
			l.look(ctx, s, func() {
				if left--; left == 0 {
					close(looked)
				}
			})
		}
		return struct{}{}, nil
	})
	if err != nil {
		return err
	}
	return l.wait(ctx, looked)
}

// resume ends the quarantine of the plugin's programs. They start again on their next use.
func (e *entry) resume(ctx context.Context) {
	if e.unit == nil {
		return
	}
	if e.unit.process != nil {
		e.unit.process.Resume()
	}
	if e.unit.servers != nil {
		e.unit.servers.Resume(ctx)
	}
}

// held is what a directory contains, or which part of it is in use. The zero value means nothing.
// Two values are compared to describe the effect of a reload.
type held struct {
	manifest *manifest.Plugin
	digest   protocol.Digest
}

// contents returns the plugins in use, by directory. It runs on the loader's goroutine.
func (l *Loader) contents(cwd string) map[string]held {
	all := map[string]held{}
	for _, s := range l.concerned(cwd) {
		for _, e := range s.entries {
			if e.unit != nil {
				all[e.dir] = held{e.unit.manifest, e.unit.copy.Digest}
			}
		}
	}
	return all
}

// planned returns the plugins that would be in use after a reload, by directory. It starts nothing
// and copies nothing. A plugin that cannot be read, or is not approved, stays as it is.
func (l *Loader) planned(ctx context.Context, cwd string, now map[string]held) (map[string]held, error) {
	dirs, err := do(ctx, l, func(context.Context) (map[string]*set, error) {
		dirs := map[string]*set{}
		for _, s := range l.concerned(cwd) {
			for _, dir := range s.list() {
				dirs[dir] = s
			}
		}
		return dirs, nil
	})
	all := map[string]held{}
	for dir, s := range dirs {
		if h := s.plannedAt(ctx, dir, now[dir]); h.manifest != nil {
			all[dir] = h
		}
	}
	return all, err
}

// plannedAt is planned for one directory.
func (s *set) plannedAt(ctx context.Context, dir string, now held) held {
	if s.loader.facts.disabled(dir) {
		return held{}
	}
	e := &entry{set: s, dir: dir}
	m, digest, _ := e.inspect(ctx)
	if digest == "" || !e.allowed(digest) {
		return now
	}
	return held{m, digest}
}

// compare returns the differences between two states of the plugins, in the order in which the
// plugins register, and the plugins with problems.
func (l *Loader) compare(cwd string, before, after map[string]held) *protocol.PluginReloadResult {
	result := &protocol.PluginReloadResult{Data: []protocol.PluginChange{}}
	seen := map[string]bool{}
	for _, s := range l.concerned(cwd) {
		result.Generation = max(result.Generation, s.number)
		for _, e := range s.entries {
			seen[e.dir] = true
			result.Data = append(result.Data, difference(e.dir, before[e.dir], after[e.dir]))
			if info := e.public(); info.Status != protocol.PluginLoaded {
				result.Problems = append(result.Problems, info)
			}
		}
	}
	for _, states := range []map[string]held{before, after} {
		for dir := range states {
			if !seen[dir] {
				seen[dir] = true
				result.Data = append(result.Data, difference(dir, before[dir], after[dir]))
			}
		}
	}
	for dir := range seen {
		result.Prefix = result.Prefix || !reflect.DeepEqual(prefix(before[dir].manifest), prefix(after[dir].manifest))
	}
	return result
}

// prefix returns what a plugin contributes to the start of each model request. A change of it costs
// the model's prompt cache in every session, so a reload reports it.
func prefix(m *manifest.Plugin) []any {
	if m == nil {
		m = &manifest.Plugin{}
	}
	prompts := slices.ContainsFunc(m.Hooks, func(h manifest.Hook) bool { return h.On == manifest.SlotPrompt })
	return []any{m.Tools, m.Prompt, m.ToolSwitches, m.MCPServers, m.MoreTools, prompts}
}

// difference returns the change of one directory, with the contributions that it adds and removes.
func difference(dir string, before, after held) protocol.PluginChange {
	c := protocol.PluginChange{Name: filepath.Base(dir), Change: protocol.PluginUnchanged}
	switch {
	case before.manifest == nil && after.manifest == nil:
		return c
	case before.manifest == nil:
		c.Name, c.Change = after.manifest.Name, protocol.PluginAdded
	case after.manifest == nil:
		c.Name, c.Change = before.manifest.Name, protocol.PluginRemoved
	case before.digest != after.digest:
		c.Name, c.Change = after.manifest.Name, protocol.PluginChanged
	default:
		c.Name = after.manifest.Name
	}
	old, now := names(before.manifest), names(after.manifest)
	c.Added, c.Removed = without(now, old), without(old, now)
	return c
}

// names lists a plugin's contributions as "KIND NAME".
func names(m *manifest.Plugin) (all []string) {
	if m == nil {
		return nil
	}
	for _, c := range Contributions(m) {
		all = append(all, c.Kind+" "+c.Name)
	}
	return all
}

// without returns the elements of all that are not in other.
func without(all, other []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(other, s) })
}
