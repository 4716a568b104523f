package plugin

import (
	"cmp"
	"slices"

	"lashd/engine/tool"
)

// contributions are what the plugins of a session register, each list in the order of registration.
type contributions struct {
	sources  []tool.Source
	switched map[string]bool // tools by name: whether a session begins with them
	prompts  []contribution[promptSource]
	dynamic  bool // some prompt is a hook of a plugin

	beforeTurn []contribution[TurnHook]
	checkpoint []contribution[CheckpointHook]
	afterTurn  []contribution[AfterTurnHook]
	beforeTool []contribution[ToolCallHook]
	afterTool  []contribution[ToolResultHook]
	inputs     map[string]turnInput // by plugin

	stream    []contribution[StreamHook]
	response  []contribution[ResponseHook]
	streamEnd []contribution[StreamEndHook]
	lifecycle []contribution[LifecycleHook]
	mutators  []contribution[ConfigMutator]
	closed    []contribution[func() error]

	transforms []contribution[ContextTransform] // in order of descending priority
	compactors []contribution[Compactor]        // likewise
	catalog    []contribution[CatalogHook]
	operations map[string]operation
	triggers   triggers
	handlers   map[handler]TaskFunc
	monitors   []MonitorDeclaration

	driver   *contribution[Driver]
	protocol *contribution[ProtocolSession]
	prose    *contribution[ProseProjector]
	project  *contribution[ResultProjector]
	executor *contribution[CodeExecutor]
}

// sort puts what has a priority in order. Equal priorities keep the order of registration.
func (c *contributions) sort() {
	slices.SortStableFunc(c.transforms, descending[ContextTransform])
	slices.SortStableFunc(c.compactors, descending[Compactor])
}

func descending[T any](a, b contribution[T]) int { return cmp.Compare(b.priority, a.priority) }
