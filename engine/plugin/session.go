package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Session is what the plugins of one session contribute together. It does not change once it is open.
type Session struct {
	plugins []Plugin
	sources []tool.Source
	prompts []Prompt
	driver  Driver
	project ResultProjector
}

// open builds plugins in order; the first is the one that must bring the driver.
func (s *Session) open(factories []Factory, options protocol.PluginOptions, ctx BuildContext) error {
	for _, f := range factories {
		ctx.Options = options[f.ID()]
		if err := s.build(f, ctx); err != nil {
			return fmt.Errorf("plugin %s: %w", f.ID(), err)
		}
		if s.driver == nil {
			return fmt.Errorf("plugin %s: %w", f.ID(), errNoDriverMade)
		}
	}
	return nil
}

func (s *Session) build(f Factory, ctx BuildContext) error {
	p, err := f.Build(ctx)
	if err != nil {
		return err
	}
	s.plugins = append(s.plugins, p)
	r := &Registrar{owner: f.ID()}
	if err := p.Register(r); err != nil {
		return err
	}
	return s.adopt(r)
}

var (
	errNoDriverMade = errors.New("registers no driver")
	errDriverTwice  = errors.New("registers a driver, but the session has one already")
	errProjectTwice = errors.New("registers a result projector, but the session has one already")
)

// adopt takes over what a plugin has registered, all of it or nothing. What the plugin does with the registrar later
// changes nothing.
func (s *Session) adopt(r *Registrar) error {
	switch {
	case r.err != nil:
		return r.err
	case r.driver != nil && s.driver != nil:
		return errDriverTwice
	case r.project != nil && s.project != nil:
		return errProjectTwice
	}
	if r.driver != nil {
		s.driver = r.driver
	}
	if r.project != nil {
		s.project = r.project
	}
	s.sources = append(s.sources, r.sources...)
	s.prompts = append(s.prompts, r.prompts...)
	return nil
}

// Driver is the session's driver.
func (s *Session) Driver() Driver { return s.driver }

// Sources are the session's sources of tools, in the order of registration.
func (s *Session) Sources() []tool.Source { return slices.Clip(s.sources) }

// Project is a tool's output as it enters the conversation.
func (s *Session) Project(tool string, out protocol.ToolOutput) protocol.ToolOutput {
	if s.project == nil {
		return out
	}
	return s.project(tool, out)
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
	all := append([]Prompt{{Slot: SlotExecution, Content: s.driver.Preamble(catalog.Manifests())}}, s.prompts...)
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
