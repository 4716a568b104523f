package plugin

import (
	"fmt"
	"slices"

	"lashd/engine/tool"
)

// ToolGroup registers tools.
type ToolGroup struct{ r *Registrar }

// Tools returns the group that registers tools.
func (r *Registrar) Tools() ToolGroup { return ToolGroup{r} }

// Switch turns tools on or off by name for new sessions, whichever plugin they belong to. A tool that is off is not a
// member until someone sets its membership. Later calls override earlier ones, across plugins.
func (g ToolGroup) Switch(on, off []string) {
	c := g.r.in()
	if c.switched == nil {
		c.switched = map[string]bool{}
	}
	for _, name := range on {
		c.switched[name] = true
	}
	for _, name := range off {
		c.switched[name] = false
	}
}

// Add registers a source of tools. Two tools of a session with the same name or id fail the build.
func (g ToolGroup) Add(p tool.Provider) {
	if missing(p) {
		g.r.fail(errNil)
		return
	}
	c := g.r.in()
	c.sources = append(c.sources, tool.Source{ID: g.r.owner, Provider: p})
}

// TurnGroup registers hooks at the seams of a turn.
type TurnGroup struct{ r *Registrar }

// Turn returns the group that registers turn hooks.
func (r *Registrar) Turn() TurnGroup { return TurnGroup{r} }

// Before registers a hook that runs before each turn.
func (g TurnGroup) Before(h TurnHook) { add(g.r, &g.r.in().beforeTurn, 0, h) }

// Checkpoint registers a hook that runs at every checkpoint of a turn.
func (g TurnGroup) Checkpoint(h CheckpointHook) { add(g.r, &g.r.in().checkpoint, 0, h) }

// After registers a hook that runs when a turn has ended, before its commit.
func (g TurnGroup) After(h AfterTurnHook) { add(g.r, &g.r.in().afterTurn, 0, h) }

// ToolCallGroup registers hooks that run before tool calls.
type ToolCallGroup struct{ r *Registrar }

// ToolCalls returns the group that registers hooks before tool calls.
func (r *Registrar) ToolCalls() ToolCallGroup { return ToolCallGroup{r} }

// Before registers a hook that runs before each tool call.
func (g ToolCallGroup) Before(h ToolCallHook) { add(g.r, &g.r.in().beforeTool, 0, h) }

// ToolResultGroup registers hooks for the results of tools.
type ToolResultGroup struct{ r *Registrar }

// ToolResults returns the group that registers hooks for tool results.
func (r *Registrar) ToolResults() ToolResultGroup { return ToolResultGroup{r} }

// After registers a hook that runs after each attempt of a call.
func (g ToolResultGroup) After(h ToolResultHook) { add(g.r, &g.r.in().afterTool, 0, h) }

// Projector registers the function that selects the part of a tool's output that enters the conversation. A session has
// at most one.
func (g ToolResultGroup) Projector(p ResultProjector) {
	set(g.r, &g.r.in().project, "result projector", p)
}

// OutputGroup registers hooks for the model's output.
type OutputGroup struct{ r *Registrar }

// Output returns the group that registers hooks for replies.
func (r *Registrar) Output() OutputGroup { return OutputGroup{r} }

// Stream registers a hook for each piece of visible text.
func (g OutputGroup) Stream(h StreamHook) { add(g.r, &g.r.in().stream, 0, h) }

// Response registers a hook for complete replies.
func (g OutputGroup) Response(h ResponseHook) { add(g.r, &g.r.in().response, 0, h) }

// Finished registers a hook that runs when a stream ends.
func (g OutputGroup) Finished(h StreamEndHook) { add(g.r, &g.r.in().streamEnd, 0, h) }

// SessionGroup registers hooks for the life of a session.
type SessionGroup struct{ r *Registrar }

// Session returns the group that registers session hooks.
func (r *Registrar) Session() SessionGroup { return SessionGroup{r} }

// On registers a hook for all lifecycle events.
func (g SessionGroup) On(h LifecycleHook) { add(g.r, &g.r.in().lifecycle, 0, h) }

// Closed registers a function that is called once when the session leaves memory, before the plugins are closed, in
// reverse order of registration. It is also called for a session that failed to open.
func (g SessionGroup) Closed(f func() error) { add(g.r, &g.r.in().closed, 0, f) }

// MutateConfig registers a hook that can change new settings of the session.
func (g SessionGroup) MutateConfig(m ConfigMutator) { add(g.r, &g.r.in().mutators, 0, m) }

// ContextGroup registers hooks for what the model sees.
type ContextGroup struct{ r *Registrar }

// Context returns the group that registers transforms and compactors.
func (r *Registrar) Context() ContextGroup { return ContextGroup{r} }

// Transform registers a context transform. A higher priority runs earlier.
func (g ContextGroup) Transform(priority int, t ContextTransform) {
	add(g.r, &g.r.in().transforms, priority, t)
}

// Compactor registers a compactor. One with a higher priority is asked earlier.
func (g ContextGroup) Compactor(priority int, c Compactor) {
	add(g.r, &g.r.in().compactors, priority, c)
}

// ProtocolGroup registers the parts of a protocol plugin.
type ProtocolGroup struct{ r *Registrar }

// Protocol returns the group that registers the parts of a protocol plugin.
func (r *Registrar) Protocol() ProtocolGroup { return ProtocolGroup{r} }

// Session registers the protocol session. It is optional: only the driver is required of a protocol plugin.
func (g ProtocolGroup) Session(p ProtocolSession) {
	set(g.r, &g.r.in().protocol, "protocol session", p)
}

// Driver registers the driver. A session has exactly one.
func (g ProtocolGroup) Driver(d Driver) { set(g.r, &g.r.in().driver, "protocol driver", d) }

// Prose registers the function that hides protocol markup from text that a person reads. It is not used for streamed
// text. A session has at most one.
func (g ProtocolGroup) Prose(p ProseProjector) { set(g.r, &g.r.in().prose, "prose projector", p) }

// ExecutionGroup registers the code executor.
type ExecutionGroup struct{ r *Registrar }

// Execution returns the group that registers the code executor.
func (r *Registrar) Execution() ExecutionGroup { return ExecutionGroup{r} }

// Executor registers the code executor. A session has at most one. If the protocol plugin brings its own, those of
// other plugins are not used.
func (g ExecutionGroup) Executor(e CodeExecutor) {
	all := g.r.in()
	if d, x := all.driver, all.executor; d != nil && x != nil && x.plugin == d.plugin && !missing(e) && g.r.owner != d.plugin {
		return
	}
	set(g.r, &all.executor, "code executor", e)
}

// CatalogGroup registers hooks for the tool catalog.
type CatalogGroup struct{ r *Registrar }

// Catalog returns the group that registers catalog hooks.
func (r *Registrar) Catalog() CatalogGroup { return CatalogGroup{r} }

// Contribute registers a hook that removes tools from the catalog.
func (g CatalogGroup) Contribute(h CatalogHook) { add(g.r, &g.r.in().catalog, 0, h) }

// PromptGroup registers texts for the system prompt.
type PromptGroup struct{ r *Registrar }

// Prompt returns the group that registers texts for the system prompt.
func (r *Registrar) Prompt() PromptGroup { return PromptGroup{r} }

// Add registers a fixed text.
func (g PromptGroup) Add(p Prompt) {
	if err := p.check(); err != nil {
		g.r.fail(fmt.Errorf("registers a prompt: %w", err))
		return
	}
	p.Tools = slices.Clone(p.Tools)
	add(g.r, &g.r.in().prompts, 0, promptSource{text: []Prompt{p}})
}

// Hook registers a function that returns texts for each iteration.
func (g PromptGroup) Hook(h PromptHook) {
	if missing(h) {
		g.r.fail(errNil)
		return
	}
	c := g.r.in()
	c.dynamic = true
	add(g.r, &c.prompts, 0, promptSource{hook: h})
}
