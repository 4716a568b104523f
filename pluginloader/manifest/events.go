package manifest

import (
	"slices"
)

// Event is an event of hooks/hooks.json.
type Event struct {
	Name    string
	Slot    Slot   // the hook that calls its commands; "": none, they load with a warning
	When    string // on which calls of the slot; or the meaning in other agents
	Matcher string // the value that a matcher is compared with; "": matchers have no effect
}

// Events returns all events of known agents, by name. Any other name is a mistake.
func Events() []Event {
	return []Event{
		{"AfterAgent", "", "an agent has replied", ""},
		{"AfterModel", "", "a model has replied", ""},
		{"AfterTool", "", "a tool has run", ""},
		{"BeforeAgent", "", "an agent starts", ""},
		{"BeforeModel", "", "before a model call", ""},
		{"BeforeTool", "", "before a tool runs", ""},
		{"BeforeToolSelection", "", "tools are chosen for a model call", ""},
		{"ConfigChange", SlotEvent, "the session's settings changed", ""},
		{"CwdChanged", "", "the directory changed", ""},
		{"DirectoryAdded", "", "a directory was added to the session", ""},
		{"Elicitation", "", "an MCP server asks a person", ""},
		{"ElicitationResult", "", "a person has answered an MCP server", ""},
		{"FileChanged", "", "a watched file changed", ""},
		{"InstructionsLoaded", "", "an instructions file was read", ""},
		{"Interrupt", SlotAfterTurn, "the turn was cancelled", ""},
		{"MessageDisplay", "", "a message is shown", ""},
		{"Notification", "", "a person is notified", ""},
		{"PermissionDenied", "", "a call was denied", ""},
		{"PermissionRequest", "", "before a person is asked about a call", ""},
		{"PostCompact", "", "history was compacted", ""},
		{"PostModelRequest", SlotAssistantResponse, "a reply is complete", ""},
		{"PostModelSwitch", "", "the model was switched", ""},
		{"PostToolBatch", "", "a batch of calls ended", ""},
		{"PostToolUse", SlotAfterToolCall, "the call succeeded", "tool"},
		{"PostToolUseFailure", SlotAfterToolCall, "the call failed", "tool"},
		{"PreCompact", SlotCompact, "before the summary is written", "trigger"},
		{"PreCompress", "", "history is compressed", ""},
		{"PreModelRequest", SlotTransformContext, "before each model call", ""},
		{"PreModelSwitch", "", "before the model is switched", ""},
		{"PreToolUse", SlotBeforeToolCall, "always", "tool"},
		{"SessionEnd", SlotClose, "always", "reason"},
		{"SessionStart", SlotBeforeTurn, "the first turn since the session was opened", "source"},
		{"Setup", "", "a project is set up", ""},
		{"Stop", SlotCheckpoint, "after a final answer, except in a child", ""},
		{"StopFailure", SlotAfterTurn, "the turn failed", ""},
		{"SubagentStart", SlotBeforeTurn, "the first turn of a child", "agent"},
		{"SubagentStop", SlotCheckpoint, "after a final answer, in a child", "agent"},
		{"TaskCompleted", "", "a task of a team ended", ""},
		{"TaskCreated", "", "a task of a team was created", ""},
		{"TeammateIdle", "", "a member of a team is idle", ""},
		{"UserPromptExpansion", "", "a command of a person is expanded", ""},
		{"UserPromptSubmit", SlotBeforeTurn, "always", ""},
		{"WorktreeCreate", "", "before a worktree is created", ""},
		{"WorktreeRemove", "", "before a worktree is removed", ""},
	}
}

// eventNamed returns the event with exactly this name.
func eventNamed(name string) (Event, bool) {
	events := Events()
	i := slices.IndexFunc(events, func(e Event) bool { return e.Name == name })
	if i < 0 {
		return Event{}, false
	}
	return events[i], true
}

// eventNames returns the names of all events, for suggestions.
func eventNames() []string {
	var names []string
	for _, e := range Events() {
		names = append(names, e.Name)
	}
	return names
}
