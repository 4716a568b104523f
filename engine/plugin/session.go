package plugin

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Session is what the plugins of one session contribute together. It does not change once it is open.
type Session struct {
	reg     Registrar
	plugins []Plugin
}

func (s *Session) build(f Factory, ctx BuildContext) error {
	p, err := f.Build(ctx)
	if err != nil {
		return err
	}
	s.plugins = append(s.plugins, p)
	s.reg.owner = f.ID()
	if err := p.Register(&s.reg); err != nil {
		return err
	}
	return s.reg.err
}

// Driver is the session's driver.
func (s *Session) Driver() Driver { return s.reg.driver }

// Sources are the session's sources of tools, in the order of registration.
func (s *Session) Sources() []tool.Source { return slices.Clip(s.reg.sources) }

// Project is a tool's output as it enters the conversation.
func (s *Session) Project(tool string, out protocol.ToolOutput) protocol.ToolOutput {
	if s.reg.project == nil {
		return out
	}
	return s.reg.project(tool, out)
}

// Close closes every plugin that wants it, and tells of all that failed.
func (s *Session) Close() error {
	var errs []error
	for _, p := range slices.Backward(s.plugins) {
		if c, ok := p.(Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// System renders the system prompt for a catalog: the driver's preamble, then the contributions that fit the catalog,
// each once, then extra, in the order of the slots.
func (s *Session) System(catalog *tool.Catalog, extra ...Prompt) string {
	all := append([]Prompt{{Slot: SlotExecution, Content: s.reg.driver.Preamble(catalog.Manifests())}}, s.reg.prompts...)
	all = append(all, extra...)
	type identity struct {
		slot     Slot
		priority int
		content  string
	}
	seen := map[identity]bool{}
	var kept []Prompt
	for _, p := range all {
		p.Content = strings.TrimSpace(p.Content)
		id := identity{p.Slot, p.Priority, p.Content}
		if p.Content == "" || seen[id] || !p.fits(catalog) {
			continue
		}
		seen[id] = true
		kept = append(kept, p)
	}
	slices.SortStableFunc(kept, func(a, b Prompt) int {
		return cmp.Or(cmp.Compare(slotOrder(a.Slot), slotOrder(b.Slot)), cmp.Compare(a.Priority, b.Priority))
	})
	return join(kept)
}

func join(prompts []Prompt) string {
	texts := make([]string, len(prompts))
	for i, p := range prompts {
		texts[i] = p.Content
	}
	return strings.Join(texts, "\n\n")
}

func (p Prompt) fits(c *tool.Catalog) bool {
	if len(p.Tools) == 0 {
		return true
	}
	return slices.ContainsFunc(p.Tools, func(name string) bool {
		_, ok := c.Lookup(name)
		return ok
	})
}

var slots = []Slot{SlotIntro, SlotExecution, SlotGuidance, SlotProjectInstructions, SlotRuntimeContext, SlotEnvironment}

func slotOrder(s Slot) int { return slices.Index(slots, s) }
