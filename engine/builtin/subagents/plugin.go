// Package subagents is the plugin with which the model has agents work for it. An agent is a child session; each piece of its work
// is a task of the session that wants it, and these tasks are all that is known of agents: so they survive whatever tasks survive.
package subagents

import (
	"cmp"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// ID is the plugin's.
const ID = "subagents"

// MaxDepth is how deep agents may be below a session of a person.
const MaxDepth = 5

// Capability is what an agent may do.
type Capability string

const (
	Explore Capability = "explore" // tools that read and search, and no agents of its own
	Peer    Capability = "peer"    // what the session may that wants it
)

// Options are the plugin's settings in the configuration of a session. Path and Output are those of an agent.
type Options struct {
	Path   string          `json:"path,omitempty"`         // of its name; absent: /root
	Output json.RawMessage `json:"outputSchema,omitempty"` // JSON Schema of what it is to answer; absent: text
	Hidden []string        `json:"hiddenTools,omitempty"`  // that agents do not get, such as those that talk with people
}

// Factory builds the agents of sessions.
type Factory struct{}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Build implements plugin.Factory.
func (Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	var o Options
	if len(ctx.Options) > 0 {
		if err := json.Unmarshal(ctx.Options, &o); err != nil {
			return nil, fmt.Errorf("options: %w", err)
		}
	}
	i := &instance{lead: newLead(o), me: ctx.Authority.Subagent}
	if i.me != nil {
		i.lead.depth, i.lead.maxDepth = i.me.Depth, i.me.MaxDepth
		i.report = &report{schema: o.Output}
	}
	return i, nil
}

// instance is the plugin of one session.
type instance struct {
	lead   *lead
	me     *protocol.Subagent // nil: the session is a person's
	report *report            // of an agent
}

// spawns tells whether the session may have agents.
func (i *instance) spawns() bool {
	return i.me == nil || i.me.Capability != string(Explore) && i.me.Depth < i.me.MaxDepth
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	if i.spawns() {
		r.Tools().Add(i.lead)
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 90, Tools: []string{spawnTool}, Content: guidance})
	}
	if i.report != nil {
		r.Tools().Add(i.report)
		text := fmt.Sprintf(agentGuidance, cmp.Or(i.lead.options.Path, "nobody's agent"))
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 91, Content: text + i.report.guidance()})
	}
	return nil
}

const guidance = `# Agents
- spawn_agent gives a piece of work to another agent, which begins with nothing but what you tell it. Use it for work that is
  independent of what you do meanwhile, or whose details you need not keep: a search through much text, a review, a change
  in another part. Do small things, and the next step that you wait for anyway, yourself.
- Say all that it needs: what to find out or do, where, what not to touch, and what the answer is to hold. Start agents that do
  not depend on each other in one go.
- The capability explore reads and searches only; peer may do what you may. Two agents must not change the same files.
- You are told when an agent ends. If you cannot go on without it, use wait_agents, not a loop of list_agents. What an agent says is
  a report: check what matters.`

const agentGuidance = `# You are an agent
You are %s, and work for another agent. No person reads along. Do exactly the task you were given; your last message is the
answer, and all that is left of your work but for what you have changed: make it complete and short. If the task cannot be
done, call submit_error and say why.`
