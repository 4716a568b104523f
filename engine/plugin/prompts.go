package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/tool"
)

// Slot is a place in the system prompt. Slots are rendered in the order of their names.
type Slot string

const (
	SlotEnvironment         Slot = "environment"
	SlotExecution           Slot = "execution"
	SlotGuidance            Slot = "guidance"
	SlotIntro               Slot = "intro"
	SlotProjectInstructions Slot = "projectInstructions"
	SlotRuntimeContext      Slot = "runtimeContext"
)

var slots = []Slot{SlotEnvironment, SlotExecution, SlotGuidance, SlotIntro, SlotProjectInstructions, SlotRuntimeContext}

// Prompt is a text for the system prompt.
type Prompt struct {
	Slot     Slot     `json:"slot"`
	Title    string   `json:"title,omitempty"`    // if any: a heading
	Priority int      `json:"priority,omitempty"` // lower comes first in its slot
	Tools    []string `json:"tools,omitempty"`    // if any: only when one of these is in the catalog
	Content  string   `json:"content"`
}

func (p Prompt) check() error {
	if !slices.Contains(slots, p.Slot) {
		return fmt.Errorf("there is no slot %q", p.Slot)
	}
	return nil
}

// promptSource is a text that stays the same, or a hook.
type promptSource struct {
	text []Prompt
	hook PromptHook
}

// promptHooks are what the system prompt is made of.
type promptHooks struct {
	plugins *roster
	prompts []contribution[promptSource]
	dynamic bool // some prompt is a hook of a plugin
}

// HasPromptHooks tells whether the prompts of an iteration must be asked for. If not, they are always the same.
func (p *promptHooks) HasPromptHooks() bool { return p.dynamic }

// Prompts are the contributions to the system prompt of an iteration, in the order of registration.
func (p *promptHooks) Prompts(ctx context.Context, pc *PromptContext) ([]Prompt, error) {
	mine := *pc
	mine.Host = pc.Host.limit(HookPrompt)
	var all []Prompt
	for _, h := range p.prompts {
		if h.do.hook == nil {
			all = append(all, h.do.text...)
			continue
		}
		list, err := invoke(ctx, p.plugins, HookPrompt, h.plugin, func() ([]Prompt, error) { return h.do.ask(ctx, mine) })
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func (p promptSource) ask(ctx context.Context, pc PromptContext) ([]Prompt, error) {
	pc.Inputs = own(pc.Inputs)
	list, err := p.hook(ctx, &pc)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	return own(list), nil
}

// RenderPrompts is a system prompt. Of contributions with one slot, priority and text only the first counts, even if it does
// not fit the catalog. Slots come in the order of their names, and in a slot the lower priority comes first. What is about
// tools is there if fit says that one of them is in the catalog.
func RenderPrompts(fit func(tools []string) bool, prompts []Prompt) string {
	kept := slices.DeleteFunc(distinct(prompts), func(p Prompt) bool { return len(p.Tools) > 0 && !fit(p.Tools) })
	slices.SortStableFunc(kept, func(a, b Prompt) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Priority, b.Priority))
	})
	texts := make([]string, len(kept))
	for i, p := range kept {
		texts[i] = p.text()
	}
	return strings.Join(texts, "\n\n")
}

func distinct(prompts []Prompt) []Prompt {
	type identity struct {
		slot     Slot
		priority int
		content  string
	}
	seen := map[identity]bool{}
	var kept []Prompt
	for _, p := range prompts {
		p.Content = strings.TrimSpace(p.Content)
		id := identity{p.Slot, p.Priority, p.Content}
		if p.Content == "" || seen[id] {
			continue
		}
		seen[id] = true
		kept = append(kept, p)
	}
	return kept
}

func (p Prompt) text() string {
	if p.Title == "" {
		return p.Content
	}
	return "# " + p.Title + "\n\n" + p.Content
}

// Texts are the contributions that need not be asked for.
func (p *promptHooks) Texts() []Prompt {
	var all []Prompt
	for _, h := range p.prompts {
		all = append(all, h.do.text...)
	}
	return all
}

// Shapers are the transforms and prompt hooks of the session, each as an error that says it was not asked.
func (s *Session) Shapers() []*HookError {
	var all []*HookError
	for _, h := range s.transforms {
		all = append(all, &HookError{h.plugin, HookTransform, ErrNotAsked})
	}
	for _, h := range s.prompts {
		if h.do.hook != nil {
			all = append(all, &HookError{h.plugin, HookPrompt, ErrNotAsked})
		}
	}
	return all
}

// ErrNotAsked means that a hook was not asked, because the session is in use.
var ErrNotAsked = errors.New("not asked, because the session is in use")

// Preamble asks the driver for its part of the prompt. Who asks keeps it with the catalog.
func (s *Session) Preamble(ctx context.Context, catalog *tool.Catalog) (string, error) {
	in := PreambleInput{Tools: own(catalog.Manifests()), Extensions: s.host.Extensions(), Triggers: s.Triggers()}
	return invoke(ctx, s.roster, HookPreamble, s.driver.plugin, func() (string, error) { return s.driver.do.Preamble(in), nil })
}

// Fits is the fitness of a catalog, for RenderPrompts.
func Fits(c *tool.Catalog) func(tools []string) bool {
	return func(tools []string) bool {
		return slices.ContainsFunc(tools, func(name string) bool {
			_, ok := c.Lookup(name)
			return ok
		})
	}
}
