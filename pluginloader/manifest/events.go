package manifest

import (
	"slices"
)

// Event is a name of hooks/hooks.json.
type Event struct {
	Name    string
	Slot    Slot   // where its hooks are asked; "": nowhere, they load with a warning
	When    string // at which of the moments of the slot; or what other agents mean by it
	Matcher string // what a matcher is compared with; "": it has no effect
}

// Events are all names that an agent uses, in the order of their names. One that is not among them is a mistake.
func Events() []Event {
	return []Event{
		{"AfterAgent", "", "an agent has answered", ""},
		{"AfterModel", "", "a model has replied", ""},
		{"AfterTool", "", "a tool has run", ""},
		{"BeforeAgent", "", "an agent begins", ""},
		{"BeforeModel", "", "a model is asked", ""},
		{"BeforeTool", "", "a tool is to run", ""},
		{"BeforeToolSelection", "", "tools are chosen for a model call", ""},
		{"ConfigChange", SlotEvent, "settings of the session have changed", ""},
		{"CwdChanged", "", "the directory has changed", ""},
		{"Elicitation", "", "an MCP server asks a person", ""},
		{"ElicitationResult", "", "a person has answered an MCP server", ""},
		{"FileChanged", "", "a watched file has changed", ""},
		{"InstructionsLoaded", "", "a file of instructions was read", ""},
		{"Interrupt", SlotAfterTurn, "the turn was cancelled", ""},
		{"Notification", "", "a person is notified", ""},
		{"PermissionDenied", "", "a call was refused", ""},
		{"PermissionRequest", "", "a person is to be asked about a call", ""},
		{"PostCompact", "", "history was compacted", ""},
		{"PostModelRequest", SlotAssistantResponse, "a reply is complete", ""},
		{"PostToolBatch", "", "a batch of calls has ended", ""},
		{"PostToolUse", SlotAfterToolCall, "the call has succeeded", "tool"},
		{"PostToolUseFailure", SlotAfterToolCall, "the call has failed", "tool"},
		{"PreCompact", SlotCompact, "before anybody makes the summary", "trigger"},
		{"PreModelRequest", SlotTransformContext, "before each model call", ""},
		{"PreToolUse", SlotBeforeToolCall, "always", "tool"},
		{"SessionEnd", SlotClose, "always", "reason"},
		{"SessionStart", SlotBeforeTurn, "the first turn since the session was opened", "source"},
		{"Setup", "", "a project is set up", ""},
		{"Stop", SlotCheckpoint, "after a final answer, in a session that is no child", ""},
		{"StopFailure", SlotAfterTurn, "the turn has failed", ""},
		{"SubagentStart", SlotBeforeTurn, "the first turn of a child", "agent"},
		{"SubagentStop", SlotCheckpoint, "after a final answer, in a child", "agent"},
		{"TaskCompleted", "", "a task of a team is done", ""},
		{"TaskCreated", "", "a task of a team was made", ""},
		{"TeammateIdle", "", "a member of a team has nothing to do", ""},
		{"UserPromptExpansion", "", "a command of a person is expanded", ""},
		{"UserPromptSubmit", SlotBeforeTurn, "always", ""},
		{"WorktreeCreate", "", "a worktree is to be made", ""},
		{"WorktreeRemove", "", "a worktree is to be removed", ""},
	}
}

// eventNamed is the event of a name, which must be written exactly so.
func eventNamed(name string) (Event, bool) {
	events := Events()
	i := slices.IndexFunc(events, func(e Event) bool { return e.Name == name })
	if i < 0 {
		return Event{}, false
	}
	return events[i], true
}

func eventNames() []string {
	var names []string
	for _, e := range Events() {
		names = append(names, e.Name)
	}
	return names
}
