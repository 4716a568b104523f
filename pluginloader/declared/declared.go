// Package declared implements the parts of a plugin that need no program: texts for the system
// prompt, tool switches for new sessions, and monitors. The loader adds its Specs to those of the
// plugin's programs. The functions have no state and are safe for concurrent use.
package declared

import (
	"maps"

	"lashd/engine/plugin"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// Monitors returns a Spec that registers a plugin's monitors. root is the plugin's directory, which
// the commands get as PLUGIN_ROOT. A variable in Env overrides it.
func Monitors(list []manifest.Monitor, root string) plugin.Spec {
	return func(r *plugin.Registrar) error {
		for _, m := range list {
			env := map[string]string{"PLUGIN_ROOT": root}
			maps.Copy(env, m.Env)
			r.Monitors().Add(protocol.MonitorSpec{
				ID: m.ID, Command: m.Command, Cwd: m.Cwd, Env: env, Persistent: m.Persistent, TimeoutMs: m.TimeoutMs,
				ArmOn: protocol.MonitorArm(m.ArmOn), Wake: protocol.MonitorWake(m.Wake), Restart: m.Restart,
			})
		}
		return nil
	}
}

// Spec returns a Spec that adds the prompt texts and tool switches to every session. switches may
// be nil. The texts are sorted by slot and priority later, when the engine renders the prompt.
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
