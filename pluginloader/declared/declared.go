// Package declared makes a part of a plugin of what is only said in its manifest: texts for the system prompt, and which tools
// a session begins with.
package declared

import (
	"lashd/engine/plugin"
	"lashd/pluginloader/manifest"
)

// Spec is what texts and switches contribute to every session.
func Spec(prompts []manifest.Prompt, switches *manifest.Switches) plugin.Spec {
	return func(r *plugin.Registrar) error {
		for _, p := range prompts {
			r.Prompt().Add(plugin.Prompt{Slot: plugin.Slot(p.Slot), Title: p.Title, Priority: p.Priority, Tools: p.Tools, Content: p.Content})
		}
		if switches != nil {
			r.Tools().Switch(switches.On, switches.Off)
		}
		return nil
	}
}
