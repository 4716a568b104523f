// Package subagents is the plugin with which the model delegates work to agents. An agent
// is a child session. Each piece of its work is a task of the session that delegates it.
// The plugin stores nothing else, so agents survive whatever tasks survive.
package subagents

import (
	"cmp"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// ID is the id of the plugin.
const ID = "subagents"

// MaxDepth is the number of nested agents below a session of a person.
const MaxDepth = 5

// Capability limits the tools of an agent.
type Capability string

const (
	Explore Capability = "explore" // only tools that read or search, and no agents of its own
	Peer    Capability = "peer"    // the same tools as the session that starts it
)

// Options are the settings of the plugin in the configuration of a session. This plugin
// sets Path and Output for the sessions of agents.
type Options struct {
	// Path is the path of the agent's name. Default: /root.
	Path string `json:"path,omitempty"`
	// Output is the JSON Schema of the agent's result. Absent: text.
	Output json.RawMessage `json:"outputSchema,omitempty"`
	// Hidden are tools that agents do not get, such as those that talk to people.
	Hidden []string `json:"hiddenTools,omitempty"`
}

// Factory builds the plugin of sessions.
type Factory struct {
	// Knows reports whether there is a model with a name. Nil: agents have the model of the session that starts them.
	Knows func(model string) bool
}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Build implements plugin.Factory.
func (f Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	var o Options
	if len(ctx.Options) > 0 {
		if err := json.Unmarshal(ctx.Options, &o); err != nil {
			return nil, fmt.Errorf("options: %w", err)
		}
	}
	i := &instance{lead: newLead(o), me: ctx.Authority.Subagent}
	var err error
	if i.lead.types, err = typesOf(ctx.Extensions); err != nil {
		return nil, err
	}
	i.lead.knows = f.Knows
	if i.me != nil {
		i.lead.depth, i.lead.maxDepth = i.me.Depth, i.me.MaxDepth
		i.report = &report{schema: o.Output}
	}
	return i, nil
}

// instance is the plugin of one session.
type instance struct {
	lead *lead
	// me is set for the session of an agent.
	me *protocol.Subagent
	// report has the tools with which an agent reports its result. Nil for other sessions.
	report *report
}

// spawns reports whether the session may start agents.
func (i *instance) spawns() bool {
	return i.me == nil || i.me.Capability != string(Explore) && i.me.Depth < i.me.MaxDepth
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	if i.spawns() {
		r.Tools().Add(i.lead)
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 90, Tools: []string{spawnTool}, Content: guidance})
		if list := i.lead.typesGuide(); list != "" {
			r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 90, Tools: []string{spawnTool}, Content: list})
		}
	}
	if i.report != nil {
		r.Tools().Add(i.report)
		text := fmt.Sprintf(agentGuidance, cmp.Or(i.lead.options.Path, "an agent"))
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 91, Content: text + i.report.guidance()})
	}
	return nil
}

// guidance is the part of the prompt about agents, present while the session can start
// agents.
const guidance = `# Agents
- spawn_agent gives a task to a new agent, which knows only what you tell it. Use it for work that is independent of your own
  next steps, or whose details you do not need to keep: a search through a lot of text, a review, a change in another part of
  the project. Do small tasks yourself, and also the next step if you would only wait for it.
- Tell the agent everything it needs: what to find out or do, where, what not to touch, and what its answer must contain. Start
  agents that do not depend on each other together.
- The capability explore only reads and searches; peer may do everything that you may. Two agents must not change the same files.
- You are notified when an agent ends. If you cannot continue without it, use wait_agents instead of polling list_agents. Check the
  important claims of an agent yourself.`

// agentGuidance is the part of an agent's prompt about its role. %s is its path.
const agentGuidance = `# You are an agent
You are %s and work for another agent. No person reads your messages. Do exactly the given task. Your last message is the
answer: except for your changes to files, nothing else of your work is kept. Make it complete and short. If the task cannot be
done, call submit_error with the reason.`
