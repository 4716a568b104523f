// Package declared makes a part of a plugin of what is only said in its manifest: texts for the system prompt, and which tools
// a session begins with.
package declared

import (
	"lashd/engine/plugin"
	"lashd/pluginloader/manifest"
)

// Part is what a manifest only says.
type Part struct {
	prompts  []manifest.Prompt
	switches *manifest.Switches // nil: none
}

// New makes a Part.
func New(prompts []manifest.Prompt, switches *manifest.Switches) *Part {
	return &Part{prompts, switches}
}

// Spec is what texts and switches contribute to every session.
func (p *Part) Spec(plugin.BuildContext) (plugin.Spec, error) {
	return func(r *plugin.Registrar) error {
		for _, t := range p.prompts {
			r.Prompt().Add(plugin.Prompt{Slot: plugin.Slot(t.Slot), Title: t.Title, Priority: t.Priority, Tools: t.Tools, Content: t.Content})
		}
		if p.switches != nil {
			r.Tools().Switch(p.switches.On, p.switches.Off)
		}
		return nil
	}, nil
}
