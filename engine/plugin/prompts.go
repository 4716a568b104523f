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

// Slot is a section of the system prompt. RenderPrompts orders sections by the name of their slot.
type Slot string

const (
	SlotEnvironment         Slot = "environment"
	SlotExecution           Slot = "execution"
	SlotGuidance            Slot = "guidance"
	SlotIntro               Slot = "intro"
	SlotProjectInstructions Slot = "projectInstructions"
	SlotRuntimeContext      Slot = "runtimeContext"
)

// slots are the slots that a prompt may use.
var slots = []Slot{SlotEnvironment, SlotExecution, SlotGuidance, SlotIntro, SlotProjectInstructions, SlotRuntimeContext}

// Prompt is a piece of the system prompt.
type Prompt struct {
	Slot     Slot     `json:"slot"`
	Title    string   `json:"title,omitempty"`    // shown as a heading; empty: no heading
	Priority int      `json:"priority,omitempty"` // lower comes first within the slot
	Tools    []string `json:"tools,omitempty"`    // include only if one of these tools is in the catalog; empty: always
	Content  string   `json:"content"`
}

func (p Prompt) check() error {
	if !slices.Contains(slots, p.Slot) {
		return fmt.Errorf("unknown prompt slot %q", p.Slot)
	}
	return nil
}

// promptSource is a fixed text or a hook; one of the two is set.
type promptSource struct {
	text []Prompt
	hook PromptHook
}

// promptHooks are the contributions to the system prompt.
type promptHooks struct {
	plugins *roster
	prompts []contribution[promptSource]
	dynamic bool // at least one source is a hook
}

// HasPromptHooks reports whether Prompts must be called for every iteration. If not, Texts has all contributions and
// they never change.
func (p *promptHooks) HasPromptHooks() bool { return p.dynamic }

// Prompts returns the contributions to the system prompt of one iteration, in the order of registration. The first
// failing hook fails all.
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

// ask calls the hook and checks its prompts.
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

// RenderPrompts joins contributions into a system prompt, ordered by slot name and then by priority. Contributions with
// the same slot, priority and text appear once; if the first of them does not fit the catalog, none appears. fit
// reports whether one of the tools is in the catalog.
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

// distinct removes empty and repeated contributions, and trims their text.
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

// Texts returns the fixed contributions, in the order of registration.
func (p *promptHooks) Texts() []Prompt {
	var all []Prompt
	for _, h := range p.prompts {
		all = append(all, h.do.text...)
	}
	return all
}

// Shapers returns an error with ErrNotAsked for each transform and prompt hook of the session. A preview shows them to
// say which hooks it did not run.
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

// ErrNotAsked means that a hook was skipped because the session is in use.
var ErrNotAsked = errors.New("skipped because the session is in use")

// Preamble calls the driver for its part of the prompt, and before it the code executor for the description that the
// driver needs. The caller caches the result with the catalog.
func (s *Session) Preamble(ctx context.Context, catalog *tool.Catalog) (p Preamble, err error) {
	in := PreambleInput{Tools: own(catalog.Manifests()), Extensions: s.host.Extensions(), Triggers: s.Triggers()}
	if in.Code, err = s.describeCode(ctx, catalog); err != nil {
		return p, err
	}
	if in.Code != nil {
		p.Language = in.Code.Language
	}
	p.Text, err = invoke(ctx, s.roster, HookPreamble, s.driver.plugin, func() (string, error) { return s.driver.do.Preamble(in), nil })
	return p, err
}

// Fits returns the fit function of RenderPrompts for a catalog.
func Fits(c *tool.Catalog) func(tools []string) bool {
	return func(tools []string) bool {
		return slices.ContainsFunc(tools, func(name string) bool {
			_, ok := c.Lookup(name)
			return ok
		})
	}
}
