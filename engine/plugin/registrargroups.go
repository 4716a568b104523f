package plugin

import (
	"fmt"
	"slices"

	"lashd/engine/tool"
)

// ToolGroup takes tools.
type ToolGroup struct{ r *Registrar }

// Tools is where tools are contributed.
func (r *Registrar) Tools() ToolGroup { return ToolGroup{r} }

// Switch says with which tools a session begins, of whatever plugin, by name: those that are off are no members until
// somebody sets them otherwise. What is said later wins.
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

// Add contributes a source of tools. No two tools of a session have one name: that is an error of the build.
func (g ToolGroup) Add(p tool.Provider) {
	if missing(p) {
		g.r.fail(errNothing)
		return
	}
	c := g.r.in()
	c.sources = append(c.sources, tool.Source{ID: g.r.owner, Provider: p})
}

// TurnGroup takes what acts at the seams of a turn.
type TurnGroup struct{ r *Registrar }

// Turn is where hooks of turns are contributed.
func (r *Registrar) Turn() TurnGroup { return TurnGroup{r} }

// Before acts before a turn.
func (g TurnGroup) Before(h TurnHook) { add(g.r, &g.r.in().beforeTurn, 0, h) }

// Checkpoint acts at every checkpoint of a turn.
func (g TurnGroup) Checkpoint(h CheckpointHook) { add(g.r, &g.r.in().checkpoint, 0, h) }

// After acts when a turn is assembled, before it is committed.
func (g TurnGroup) After(h AfterTurnHook) { add(g.r, &g.r.in().afterTurn, 0, h) }

// ToolCallGroup takes what acts before tool calls.
type ToolCallGroup struct{ r *Registrar }

// ToolCalls is where hooks of calls are contributed.
func (r *Registrar) ToolCalls() ToolCallGroup { return ToolCallGroup{r} }

// Before acts before a call.
func (g ToolCallGroup) Before(h ToolCallHook) { add(g.r, &g.r.in().beforeTool, 0, h) }

// ToolResultGroup takes what acts on the results of tools.
type ToolResultGroup struct{ r *Registrar }

// ToolResults is where hooks of results are contributed.
func (r *Registrar) ToolResults() ToolResultGroup { return ToolResultGroup{r} }

// After acts after each attempt of a call.
func (g ToolResultGroup) After(h ToolResultHook) { add(g.r, &g.r.in().afterTool, 0, h) }

// Projector decides what of an output enters the conversation. A session has at most one.
func (g ToolResultGroup) Projector(p ResultProjector) {
	set(g.r, &g.r.in().project, "result projector", p)
}

// OutputGroup takes what acts on the model's output.
type OutputGroup struct{ r *Registrar }

// Output is where hooks of replies are contributed.
func (r *Registrar) Output() OutputGroup { return OutputGroup{r} }

// Stream acts on each piece of visible text.
func (g OutputGroup) Stream(h StreamHook) { add(g.r, &g.r.in().stream, 0, h) }

// Response acts on a complete reply.
func (g OutputGroup) Response(h ResponseHook) { add(g.r, &g.r.in().response, 0, h) }

// Finished is told that a stream has ended.
func (g OutputGroup) Finished(h StreamEndHook) { add(g.r, &g.r.in().streamEnd, 0, h) }

// SessionGroup takes what follows a session's life.
type SessionGroup struct{ r *Registrar }

// Session is where hooks of sessions are contributed.
func (r *Registrar) Session() SessionGroup { return SessionGroup{r} }

// On is told of every lifecycle event.
func (g SessionGroup) On(h LifecycleHook) { add(g.r, &g.r.in().lifecycle, 0, h) }

// Closed is called once when the session leaves memory, before plugins are closed, the last one first. A session that never
// opened is closed, too.
func (g SessionGroup) Closed(f func() error) { add(g.r, &g.r.in().closed, 0, f) }

// MutateConfig acts on settings that change.
func (g SessionGroup) MutateConfig(m ConfigMutator) { add(g.r, &g.r.in().mutators, 0, m) }

// ContextGroup takes what acts on the view of the model.
type ContextGroup struct{ r *Registrar }

// Context is where transforms and compactors are contributed.
func (r *Registrar) Context() ContextGroup { return ContextGroup{r} }

// Transform acts on what the model sees in a turn; a higher priority acts earlier.
func (g ContextGroup) Transform(priority int, t ContextTransform) {
	add(g.r, &g.r.in().transforms, priority, t)
}

// Compactor may summarise history; one of a higher priority is asked earlier.
func (g ContextGroup) Compactor(priority int, c Compactor) {
	add(g.r, &g.r.in().compactors, priority, c)
}

// ProtocolGroup takes what makes a protocol plugin.
type ProtocolGroup struct{ r *Registrar }

// Protocol is where the singletons of a protocol plugin are contributed.
func (r *Registrar) Protocol() ProtocolGroup { return ProtocolGroup{r} }

// Session contributes the protocol session. A session without one has one whose callbacks are all absent: what makes a
// protocol plugin is its driver, and only that is mandatory.
func (g ProtocolGroup) Session(p ProtocolSession) {
	set(g.r, &g.r.in().protocol, "protocol session", p)
}

// Driver contributes the driver. A session has exactly one.
func (g ProtocolGroup) Driver(d Driver) { set(g.r, &g.r.in().driver, "protocol driver", d) }

// Prose hides the protocol's markup from text that a person sees. It is not used for text that was streamed. A session has at
// most one.
func (g ProtocolGroup) Prose(p ProseProjector) { set(g.r, &g.r.in().prose, "prose projector", p) }

// ExecutionGroup takes what runs code of the model.
type ExecutionGroup struct{ r *Registrar }

// Execution is where the code executor is contributed.
func (r *Registrar) Execution() ExecutionGroup { return ExecutionGroup{r} }

// Executor runs code cells. A session has at most one.
func (g ExecutionGroup) Executor(e CodeExecutor) {
	set(g.r, &g.r.in().executor, "code executor", e)
}

// CatalogGroup takes what acts on the catalog.
type CatalogGroup struct{ r *Registrar }

// Catalog is where catalog contributors are contributed.
func (r *Registrar) Catalog() CatalogGroup { return CatalogGroup{r} }

// Contribute takes tools out of the catalog.
func (g CatalogGroup) Contribute(h CatalogHook) { add(g.r, &g.r.in().catalog, 0, h) }

// PromptGroup takes texts for the system prompt.
type PromptGroup struct{ r *Registrar }

// Prompt is where texts for the system prompt are contributed.
func (r *Registrar) Prompt() PromptGroup { return PromptGroup{r} }

// Add contributes a text that stays the same.
func (g PromptGroup) Add(p Prompt) {
	if err := p.check(); err != nil {
		g.r.fail(fmt.Errorf("registers a prompt: %w", err))
		return
	}
	p.Tools = slices.Clone(p.Tools)
	add(g.r, &g.r.in().prompts, 0, promptSource{text: []Prompt{p}})
}

// Hook contributes texts that are asked for in each iteration.
func (g PromptGroup) Hook(h PromptHook) {
	if missing(h) {
		g.r.fail(errNothing)
		return
	}
	c := g.r.in()
	c.dynamic = true
	add(g.r, &c.prompts, 0, promptSource{hook: h})
}
