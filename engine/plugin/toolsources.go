package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"lashd/engine/tool"
	"slices"
)

// toolSources are the sources of the session's tool catalog and the hooks that filter it.
type toolSources struct {
	plugins  *roster
	sources  []tool.Source
	switched map[string]bool // by tool name: whether new sessions have the tool
	catalog  []contribution[CatalogHook]
}

// checkTools rejects two tools with the same name or id. It asks each source for its list once; step names the source
// for the goroutine that waits.
func (t *toolSources) checkTools(step *step) error {
	names, ids := map[string]string{}, map[string]string{}
	for _, src := range t.sources {
		step.set(HookTools, src.ID)
		list, err := contain(func() ([]tool.Tool, error) { return src.Provider.Tools(), nil })
		if err != nil {
			return &BuildError{src.ID, fmt.Errorf("tools: %w", err)}
		}
		for _, t := range list {
			m := t.Manifest
			err := cmp.Or(claim(names, "named", m.Name, src.ID), claim(ids, "with the id", cmp.Or(m.ID, m.Name), src.ID))
			if err != nil {
				return &BuildError{src.ID, err}
			}
		}
	}
	return nil
}

// claim records the plugin that uses a key, or fails if another one has it. what names the kind of key in the error.
func claim(owner map[string]string, what, key, plugin string) error {
	if other, taken := owner[key]; taken {
		return fmt.Errorf("registers a tool %s %q, but plugin %s already registered one", what, key, other)
	}
	owner[key] = plugin
	return nil
}

// Sources returns the session's sources of tools, in the order of registration.
func (t *toolSources) Sources() []tool.Source { return slices.Clip(t.sources) }

// Without returns the names of tools that are off in a new session.
func (t *toolSources) Without() map[string]bool {
	off := map[string]bool{}
	for name, on := range t.switched {
		if !on {
			off[name] = true
		}
	}
	return off
}

// omission is the result of a catalog hook.
type omission struct {
	names  []string
	forNow bool // came with tool.ErrForNow: do not cache the catalog
}

// omitted converts the results of a catalog hook: tool.ErrForNow is not a failure.
func omitted(names []string, err error) (omission, error) {
	if errors.Is(err, tool.ErrForNow) {
		return omission{names, true}, nil
	}
	return omission{names, false}, err
}

// Contribute returns the names that catalog hooks remove, in the order of registration. If any hook returned
// tool.ErrForNow, the names come with that error and the caller must not cache the catalog.
func (t *toolSources) Contribute(ctx context.Context, cc CatalogContext) (remove []string, err error) {
	var forNow error
	for _, h := range t.catalog {
		mine := own(cc)
		out, err := invoke(ctx, t.plugins, HookCatalog, h.plugin, func() (omission, error) { return omitted(h.do(ctx, &mine)) })
		switch {
		case err != nil && ctx.Err() != nil && !errors.As(err, new(*AbandonedError)): // this hook used up the time: name it
			return nil, &HookError{h.plugin, HookCatalog, err}
		case err != nil:
			return nil, err
		case out.forNow:
			forNow = tool.ErrForNow
		}
		remove = append(remove, out.names...)
	}
	return remove, forNow
}
