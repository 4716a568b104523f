package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// EventType names what happened. See Durable for which types have a Seq.
type EventType string

const (
	// An input is durable and has its turn: input, inputIds; causes, if it is a wake.
	EventTurnAccepted EventType = "turn/accepted"
	// The turn is driven, for the first time or again after a restart.
	EventTurnStarted EventType = "turn/started"
	// The turn is over: outcome, usage, issues. Nothing of it follows, but a turn may: followedBy.
	EventTurnCompleted EventType = "turn/completed"
	// An item is under way: item. That of a tool call is durable and comes in the commit before the call.
	EventItemStarted EventType = "item/started"
	// The text of an item grew: itemId, offset in bytes, text.
	EventItemDelta EventType = "item/delta"
	// An item is whole and stored: itemId, item.
	EventItemCompleted EventType = "item/completed"
	// What was shown of an item is withdrawn: itemId.
	EventItemRetracted EventType = "item/retracted"
	// A model call begins: iteration.
	EventModelRequested EventType = "model/requested"
	// A model call is over and booked: call.
	EventModelRecorded EventType = "model/recorded"
	// A steered input entered the turn: inputIds, boundary.
	EventInputAccepted EventType = "input/accepted"
	// A person is asked: decision. That of a session which works for this one comes too, without a seq: its sessionId tells.
	EventDecisionOpened EventType = "decision/opened"
	// The question is settled, by an answer or by its deadline: decision. Likewise.
	EventDecisionResolved EventType = "decision/resolved"
	// A client is to run its tool: toolCall, clientId, deadlineMs in ms since 1970. It answers with tool/respond.
	EventToolRequested EventType = "tool/requested"
	// A tool tells how far it is: toolCall with its callId, text.
	EventToolProgress EventType = "tool/progress"
	// A model call is tried again after a wait: retry.
	EventRetryStatus EventType = "retry/status"
	// A plugin shows what it does: plugin, name, text.
	EventPluginStatus EventType = "plugin/status"
	// An event of a plugin's own: plugin, name, body.
	EventPluginCustom EventType = "plugin/custom"
	// The model's context begins anew: frame, frameId.
	EventFrameOpened EventType = "frame/opened"
	// Settings, title or place changed: config, title, or name (archived, unarchived).
	EventSessionConfigured EventType = "session/configured"
	// This session began as a fork: source.
	EventSessionForked EventType = "session/forked"
	// The leaf moved to an ancestor: head.
	EventSessionRewound EventType = "session/rewound"
	// History was summarised: frame, frameId, plugin, itemId of the mark that people see.
	EventSessionCompacted EventType = "session/compacted"
	// The tools of the session changed: tools.
	EventToolsChanged EventType = "tools/changed"
	// Inputs wait, or wait no more: queue, all that wait now.
	EventQueueChanged EventType = "queue/changed"
	// A task was created: task.
	EventTaskStarted EventType = "task/started"
	// A task changed: task, and taskEvent, which is what happened to it.
	EventTaskChanged EventType = "task/changed"
	// A task is over: task.
	EventTaskCompleted EventType = "task/completed"
	// A monitor began, has put something out, or ended: monitor as it is then, updates.
	EventMonitorUpdate EventType = "monitor/update"
	// A named snapshot was made: name.
	EventSnapshotCreated EventType = "snapshot/created"
	// A named snapshot is there no more: name.
	EventSnapshotDeleted EventType = "snapshot/deleted"
	// A turn, or a rewind, changed files, or files cannot be brought back to before it: point as it is then.
	EventFilePoint EventType = "file/point"
	// Tokens were booked: usage of this turn or call, total of the session.
	EventUsageUpdated EventType = "usage/updated"
)

// Event is what observers of a session see. Type tells which of the fields below it are set; the event table of the
// protocol document lists them. An event with a Seq is durable, the others are not and are never replayed.
type Event struct {
	SessionID SessionID `json:"sessionId,omitempty"` // always set on the wire
	Seq       Seq       `json:"seq,omitempty"`
	AtMs      int64     `json:"atMs"`
	TurnID    TurnID    `json:"turnId,omitempty"`
	Type      EventType `json:"type"`

	Item      *Item           `json:"item,omitempty"`
	ItemID    ItemID          `json:"itemId,omitempty"`
	Offset    *int            `json:"offset,omitempty"` // of Text in the item's text, in bytes
	Text      string          `json:"text,omitempty"`
	Input     []InputPart     `json:"input,omitempty"`
	InputIDs  []InputID       `json:"inputIds,omitempty"`
	Causes    []TurnCause     `json:"causes,omitempty"` // of the inputs that no person sent; their text is in Input
	Boundary  Boundary        `json:"boundary,omitempty"`
	Outcome   *TurnOutcome    `json:"outcome,omitempty"`
	Follower  TurnID          `json:"followedBy,omitempty"` // the turn that goes on in another frame
	Usage     *Usage          `json:"usage,omitempty"`
	Total     *Usage          `json:"total,omitempty"` // of the session, this turn included
	Issues    []Issue         `json:"issues,omitempty"`
	Call      *CallRecord     `json:"call,omitempty"`
	Iteration int             `json:"iteration,omitempty"`
	Decision  *Decision       `json:"decision,omitempty"`
	ToolCall  *ToolCall       `json:"toolCall,omitempty"`
	ClientID  ClientID        `json:"clientId,omitempty"`
	Deadline  int64           `json:"deadlineMs,omitempty"`
	Retry     *RetryStatus    `json:"retry,omitempty"`
	Config    *Config         `json:"config,omitempty"`
	Frame     *FrameOpen      `json:"frame,omitempty"`
	FrameID   FrameID         `json:"frameId,omitempty"`
	Head      *Head           `json:"head,omitempty"`
	Source    *ForkSource     `json:"source,omitempty"`
	Tools     *ToolState      `json:"tools,omitempty"`
	Queue     []QueuedInput   `json:"queue,omitempty"`
	Title     string          `json:"title,omitempty"`
	Plugin    string          `json:"plugin,omitempty"`
	Name      string          `json:"name,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
	Task      *Task           `json:"task,omitempty"`
	TaskEvent *TaskEvent      `json:"taskEvent,omitempty"`
	Monitor   *Monitor        `json:"monitor,omitempty"`
	Updates   []MonitorUpdate `json:"updates,omitempty"`
	Point     *FilePoint      `json:"point,omitempty"`
}

// AboutServer reports whether an event says that an MCP server which a client has brought is not there, or is there again.
func (e *Event) AboutServer() bool {
	return e.Type == EventPluginStatus && (e.Name == ServerFailed || e.Name == ServerRecovered)
}

// Names of plugin/status events about MCP servers that a client has brought.
const (
	ServerFailed    = "mcp_server_failed"
	ServerRecovered = "mcp_server_recovered"
)

// Durable tells whether events of this type have a Seq. An item/started or item/retracted has one only when it
// concerns a tool call or a turn that failed to finalise, a decision's only when it is the session's own; there Seq itself tells.
func (t EventType) Durable() bool {
	switch t {
	case EventTurnStarted, EventModelRequested, EventItemDelta, EventToolProgress, EventRetryStatus:
		return false
	}
	return true
}

// RetryStatus announces that a failed model call will be tried again after a wait. Interrupting the turn ends the wait.
type RetryStatus struct {
	WaitMs   int64  `json:"waitMs"`
	Attempt  int    `json:"attempt"` // the number of the next attempt, of those that count
	Attempts int    `json:"maxAttempts"`
	Counted  bool   `json:"counted,omitempty"` // the failed attempt used up one of maxAttempts; throttling and an unreachable server use a budget of time instead
	Reason   string `json:"reason"`            // the code of the error
	Status   int    `json:"status,omitempty"`  // HTTP status of the answer; absent: there was no answer
	Message  string `json:"message,omitempty"` // the error, without keys
}

// String describes the failure and what follows, as people are shown it.
func (r *RetryStatus) String() string {
	what := cmp.Or(r.Message, r.Reason)
	if r.Status != 0 {
		what += fmt.Sprintf(" (HTTP %d)", r.Status)
	}
	next := "trying again"
	if r.Counted {
		next = fmt.Sprintf("attempt %d of %d", r.Attempt, r.Attempts)
	}
	return fmt.Sprintf("the model call failed: %s; %s in %v", what, next, time.Duration(r.WaitMs)*time.Millisecond)
}

// Gap tells a client that events cannot be replayed: it must read the session again.
type Gap struct {
	SessionID SessionID `json:"sessionId"`
	FromSeq   Seq       `json:"fromSeq"`
	ToSeq     Seq       `json:"toSeq"`
	Reason    string    `json:"reason"` // trimmed, otherStore, rolledBack
}

// ItemKind is what an item shows.
type ItemKind string

const (
	ItemUserMessage  ItemKind = "userMessage"
	ItemAgentMessage ItemKind = "agentMessage"
	ItemReasoning    ItemKind = "reasoning"
	ItemToolCall     ItemKind = "toolCall"
	ItemCodeCell     ItemKind = "codeCell"
	ItemFileChange   ItemKind = "fileChange"
	ItemPlan         ItemKind = "plan"
	ItemCompaction   ItemKind = "compaction"
	ItemNotice       ItemKind = "notice"
)

// ItemStatus is where an item is.
type ItemStatus string

const (
	ItemInProgress ItemStatus = "inProgress"
	ItemDone       ItemStatus = "completed"
	ItemFailed     ItemStatus = "failed"
	ItemUnknown    ItemStatus = "unknown" // a tool call of unknown outcome
)

// Item is a thing shown in a turn.
type Item struct {
	ID         ItemID          `json:"itemId"`
	Kind       ItemKind        `json:"kind"`
	Status     ItemStatus      `json:"status"`
	TurnID     TurnID          `json:"turnId,omitempty"`
	AtMs       int64           `json:"atMs"`
	Text       string          `json:"text,omitempty"`
	CallID     CallID          `json:"callId,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Output     *ToolOutput     `json:"output,omitempty"`
	DurationMs int64           `json:"durationMs,omitempty"`
	Attachment *Attachment     `json:"attachment,omitempty"`
	Origin     *Origin         `json:"origin,omitempty"`
	Plugin     *PluginNode     `json:"plugin,omitempty"`
}
