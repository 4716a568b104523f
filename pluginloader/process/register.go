package process

import (
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// registrations registers each hook with the engine. A name without an entry is not a hook, which
// Hook.check reports.
var registrations = map[HookName]func(*plugin.Registrar, *hook){
	Prompt:            func(r *plugin.Registrar, h *hook) { r.Prompt().Hook(h.prompt) },
	BeforeTurn:        func(r *plugin.Registrar, h *hook) { r.Turn().Before(h.beforeTurn) },
	BeforeToolCall:    func(r *plugin.Registrar, h *hook) { r.ToolCalls().Before(h.beforeToolCall) },
	AfterToolCall:     func(r *plugin.Registrar, h *hook) { r.ToolResults().After(h.afterToolCall) },
	Checkpoint:        func(r *plugin.Registrar, h *hook) { r.Turn().Checkpoint(h.checkpoint) },
	AfterTurn:         func(r *plugin.Registrar, h *hook) { r.Turn().After(h.afterTurn) },
	AssistantStream:   func(r *plugin.Registrar, h *hook) { r.Output().Stream(h.assistantStream) },
	AssistantResponse: func(r *plugin.Registrar, h *hook) { r.Output().Response(h.assistantResponse) },
	StreamFinished:    func(r *plugin.Registrar, h *hook) { r.Output().Finished(h.streamFinished) },
	ProjectToolResult: func(r *plugin.Registrar, h *hook) { r.ToolResults().Projector(h.projectToolResult) },
	ConfigChanged:     func(r *plugin.Registrar, h *hook) { r.Session().MutateConfig(h.configChanged) },
	Event:             func(r *plugin.Registrar, h *hook) { r.Session().On(h.event) },
	TransformContext:  func(r *plugin.Registrar, h *hook) { r.Context().Transform(h.Priority, h.transformContext) },
	Compact:           func(r *plugin.Registrar, h *hook) { r.Context().Compactor(h.Priority, h.compact) },
	Catalog:           func(r *plugin.Registrar, h *hook) { r.Catalog().Contribute(h.catalog) },
	ProjectProse:      func(r *plugin.Registrar, h *hook) { r.Protocol().Prose(h.projectProse) },
}

// Register implements plugin.Plugin. It registers what the manifest declares; the process need not
// run.
func (i *instance) Register(r *plugin.Registrar) error {
	c := &i.factory.config.Contributes
	for n := range c.Hooks {
		h := &hook{&c.Hooks[n], i}
		registrations[h.Name](r, h)
	}
	for _, p := range c.Prompts {
		r.Prompt().Add(p)
	}
	for _, t := range c.Triggers {
		r.Triggers().Event(t)
	}
	if c.Input != nil {
		r.Turn().Input(*c.Input)
	}
	for _, name := range c.Tasks {
		r.Tasks().Handler(name, i.handler(name))
	}
	if c.Executor != nil {
		r.Execution().Executor(&executor{instance: i})
	}
	i.registerTools(r, c)
	for _, o := range c.Operations {
		i.registerOperation(r, o)
	}
	if i.also != nil {
		return i.also(r)
	}
	return nil
}

// registerTools registers the tools, with Prepare only if the plugin completes arguments.
func (i *instance) registerTools(r *plugin.Registrar, c *Contributions) {
	switch tools := (&tools{i}); {
	case len(c.Tools) == 0 && !c.Changing:
	case c.Preparing:
		r.Tools().Add(&preparingTools{tools})
	default:
		r.Tools().Add(tools)
	}
}

// registerOperation registers an operation with the time limit of its kind.
func (i *instance) registerOperation(r *plugin.Registrar, info protocol.OperationInfo) {
	o, d := &operation{i, info}, i.factory.config.Deadlines
	switch info.Kind {
	case protocol.OperationQuery:
		r.Operations().Query(info, o.query)
	case protocol.OperationTask:
		r.Operations().Task(info, o.change(d.Task, patience))
	default:
		r.Operations().Command(info, o.change(d.Command, 0))
	}
}
