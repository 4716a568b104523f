package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"lashd/engine/tool"
	"slices"
)

// toolSources are what the catalog of a session is made of.
type toolSources struct {
	plugins  *roster
	sources  []tool.Source
	switched map[string]bool // tools by name: whether a session begins with them
	catalog  []contribution[CatalogHook]
}

// checkTools refuses two tools of one name, or of one id.
func (t *toolSources) checkTools(step *step) error {
	names, ids := map[string]string{}, map[string]string{}
	for _, src := range t.sources {
		step.is(HookTools, src.ID)
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

func claim(owner map[string]string, what, key, plugin string) error {
	if other, taken := owner[key]; taken {
		return fmt.Errorf("registers a tool %s %q, but the plugin %s has registered one already", what, key, other)
	}
	owner[key] = plugin
	return nil
}

// Sources are the session's sources of tools, in the order of registration.
func (t *toolSources) Sources() []tool.Source { return slices.Clip(t.sources) }

// Without are the names of tools that the session begins without.
func (t *toolSources) Without() map[string]bool {
	off := map[string]bool{}
	for name, on := range t.switched {
		if !on {
			off[name] = true
		}
	}
	return off
}

// omission is what a catalog contributor wants left out.
type omission struct {
	names  []string
	forNow bool
}

func omitted(names []string, err error) (omission, error) {
	if errors.Is(err, tool.ErrForNow) {
		return omission{names, true}, nil
	}
	return omission{names, false}, err
}

// Contribute is what the catalog contributors want left out, in the order of registration. It may come with tool.ErrForNow.
func (t *toolSources) Contribute(ctx context.Context, cc CatalogContext) (remove []string, err error) {
	var forNow error
	for _, h := range t.catalog {
		mine := own(cc)
		out, err := invoke(ctx, t.plugins, HookCatalog, h.plugin, func() (omission, error) { return omitted(h.do(ctx, &mine)) })
		switch {
		case err != nil && ctx.Err() != nil && !errors.As(err, new(*LeftError)): // it is this one that was waited for
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
