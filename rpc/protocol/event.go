package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// EventType is the type of a session event. Durable reports which types have a Seq.
type EventType string

const (
	// An input is stored and has a turn: input, inputIds; causes if it is a wake.
	EventTurnAccepted EventType = "turn/accepted"
	// The turn starts, or continues after a restart of the daemon.
	EventTurnStarted EventType = "turn/started"
	// The turn has ended: outcome, usage, issues; followedBy if another turn continues its work. It is the turn's last event.
	EventTurnCompleted EventType = "turn/completed"
	// An item is in progress: item. For a tool call or a complete code cell the event is durable, and committed before it begins to run.
	// Its decision says how lashd decided about the call; if a person decides, item/completed has it. Code that streams has begun before with an event without a seq; the durable one replaces its item.
	EventItemStarted EventType = "item/started"
	// Text was appended to an item: itemId, offset in bytes, text.
	EventItemDelta EventType = "item/delta"
	// An item is complete and stored: itemId, item.
	EventItemCompleted EventType = "item/completed"
	// An item was withdrawn; remove it from display: itemId.
	EventItemRetracted EventType = "item/retracted"
	// A model call begins: iteration.
	EventModelRequested EventType = "model/requested"
	// A model call has ended and is recorded: call.
	EventModelRecorded EventType = "model/recorded"
	// A steered input entered the turn: inputIds, boundary.
	EventInputAccepted EventType = "input/accepted"
	// A decision is open: decision. Decisions of subagents arrive too, without a seq; see decision.sessionId.
	EventDecisionOpened EventType = "decision/opened"
	// A decision has an answer, or its deadline has passed: decision. Decisions of subagents arrive too, without a seq.
	EventDecisionResolved EventType = "decision/resolved"
	// The client clientId must run a tool: toolCall, clientId, deadlineMs in ms since 1970. The client answers with tool/respond.
	EventToolRequested EventType = "tool/requested"
	// A tool reports progress: toolCall with its callId, text.
	EventToolProgress EventType = "tool/progress"
	// A code cell makes a tool call, or the call has ended: itemId of the cell, cellCall.
	EventCellCall EventType = "cell/call"
	// lashd waits before it retries a model call: retry.
	EventRetryStatus EventType = "retry/status"
	// A plugin reports its status: plugin, name, text.
	EventPluginStatus EventType = "plugin/status"
	// A plugin sends an event of its own: plugin, name, body.
	EventPluginCustom EventType = "plugin/custom"
	// A frame opened; the model's context starts over: frame, frameId.
	EventFrameOpened EventType = "frame/opened"
	// Settings, the title or the archived state changed: config, title, or name (archived, unarchived).
	EventSessionConfigured EventType = "session/configured"
	// This session was created as a fork: source.
	EventSessionForked EventType = "session/forked"
	// The leaf moved to an ancestor: head.
	EventSessionRewound EventType = "session/rewound"
	// History was compacted: frame, frameId, plugin, itemId of the item that marks it. The summary follows as item/completed; messages that stay do not.
	EventSessionCompacted EventType = "session/compacted"
	// The tools of the session changed: tools.
	EventToolsChanged EventType = "tools/changed"
	// The queue changed: queue, all queued inputs.
	EventQueueChanged EventType = "queue/changed"
	// A task was created: task.
	EventTaskStarted EventType = "task/started"
	// A task changed: task, taskEvent with the change.
	EventTaskChanged EventType = "task/changed"
	// A task has ended: task.
	EventTaskCompleted EventType = "task/completed"
	// A monitor started, printed lines or ended: monitor, updates.
	EventMonitorUpdate EventType = "monitor/update"
	// A snapshot was created: name.
	EventSnapshotCreated EventType = "snapshot/created"
	// A snapshot was deleted: name.
	EventSnapshotDeleted EventType = "snapshot/deleted"
	// A turn or an undo changed files, or a file point became impossible to restore: point.
	EventFilePoint EventType = "file/point"
	// lashd records who decided over a tool call, or where its programs run: audit.
	EventAuditRecorded EventType = "audit/recorded"
	// Token usage was recorded: usage of this turn or call, total of the session.
	EventUsageUpdated EventType = "usage/updated"
)

// Event is an entry of a session's log, as subscribers receive it. Type determines which fields after it are set; the comments
// of EventType list them. An event with a Seq is durable. Events without one are never replayed.
type Event struct {
	SessionID SessionID `json:"sessionId,omitempty"` // always set on the wire
	Seq       Seq       `json:"seq,omitempty"`
	AtMs      int64     `json:"atMs"`
	TurnID    TurnID    `json:"turnId,omitempty"`
	Type      EventType `json:"type"`

	Item      *Item           `json:"item,omitempty"`
	ItemID    ItemID          `json:"itemId,omitempty"`
	Offset    *int            `json:"offset,omitempty"` // position of Text in the item's text, in bytes
	Text      string          `json:"text,omitempty"`
	Input     []InputPart     `json:"input,omitempty"`
	InputIDs  []InputID       `json:"inputIds,omitempty"`
	Causes    []TurnCause     `json:"causes,omitempty"` // causes of the inputs that are wakes; their text is in Input
	Boundary  Boundary        `json:"boundary,omitempty"`
	Outcome   *TurnOutcome    `json:"outcome,omitempty"`
	Follower  TurnID          `json:"followedBy,omitempty"` // the turn that continues in another frame
	Usage     *Usage          `json:"usage,omitempty"`
	Total     *Usage          `json:"total,omitempty"` // of the session, including this turn
	Issues    []Issue         `json:"issues,omitempty"`
	Call      *CallRecord     `json:"call,omitempty"`
	Iteration int             `json:"iteration,omitempty"`
	Decision  *Decision       `json:"decision,omitempty"`
	ToolCall  *ToolCall       `json:"toolCall,omitempty"`
	CellCall  *CellCall       `json:"cellCall,omitempty"`
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
	Audit     *AuditRecord    `json:"audit,omitempty"`
}

// AboutServer reports whether the event says that an MCP server of an overlay failed or recovered.
func (e *Event) AboutServer() bool {
	return e.Type == EventPluginStatus && (e.Name == ServerFailed || e.Name == ServerRecovered)
}

// Names of plugin/status events about MCP servers of overlays.
const (
	ServerFailed    = "mcp_server_failed"
	ServerRecovered = "mcp_server_recovered"
)

// Durable reports whether events of this type can have a Seq. An item/started has one only for a tool call or a code cell, an item/retracted only
// in a turn that lashd could not complete, and a decision's event only in its own session. For these, check Seq.
func (t EventType) Durable() bool {
	switch t {
	case EventTurnStarted, EventModelRequested, EventItemDelta, EventToolProgress, EventCellCall, EventRetryStatus:
		return false
	}
	return true
}

// RetryStatus announces that lashd will retry a failed model call after a wait. Interrupting the turn ends the wait.
type RetryStatus struct {
	WaitMs   int64  `json:"waitMs"`
	Attempt  int    `json:"attempt"` // number of the next counted attempt
	Attempts int    `json:"maxAttempts"`
	Counted  bool   `json:"counted,omitempty"` // the failed attempt counts toward maxAttempts; throttling and an unreachable server are limited by time instead
	Reason   string `json:"reason"`            // the error's code, or "admission": the call waits for a limit of its provider and has not failed
	Status   int    `json:"status,omitempty"`  // HTTP status of the response; absent: no response
	Message  string `json:"message,omitempty"` // the error message, without API keys
}

// RetryAdmission is the reason of a RetryStatus for a call that waits until a limit of its provider allows it.
const RetryAdmission = "admission"

// String describes the failure and the next step for people.
func (r *RetryStatus) String() string {
	what := cmp.Or(r.Message, r.Reason)
	if r.Reason == RetryAdmission {
		return "the model call waits: " + what
	}
	if r.Status != 0 {
		what += fmt.Sprintf(" (HTTP %d)", r.Status)
	}
	next := "trying again"
	if r.Counted {
		next = fmt.Sprintf("attempt %d of %d", r.Attempt, r.Attempts)
	}
	return fmt.Sprintf("the model call failed: %s; %s in %v", what, next, time.Duration(r.WaitMs)*time.Millisecond)
}

// Gap reports that events cannot be replayed. The client must read the session again.
type Gap struct {
	SessionID SessionID `json:"sessionId"`
	FromSeq   Seq       `json:"fromSeq"`
	ToSeq     Seq       `json:"toSeq"`
	Reason    string    `json:"reason"` // trimmed, otherStore or rolledBack
}

// ItemKind says what an item shows.
type ItemKind string

const (
	ItemUserMessage  ItemKind = "userMessage"  // an input from a person or a program
	ItemAgentMessage ItemKind = "agentMessage" // text from the model
	ItemReasoning    ItemKind = "reasoning"    // the model's reasoning
	ItemToolCall     ItemKind = "toolCall"     // a tool call and its result; title names calls of lashd's own tools for people
	ItemCodeCell     ItemKind = "codeCell"     // code of the model and its result; failed without cell: the code was incomplete and did not run
	ItemFileChange   ItemKind = "fileChange"   // a change of a workspace file
	ItemPlan         ItemKind = "plan"         // the agent's plan
	ItemCompaction   ItemKind = "compaction"   // marks where history was compacted
	ItemNotice       ItemKind = "notice"       // a message from lashd or a plugin
)

// ItemStatus is the state of an item.
type ItemStatus string

const (
	ItemInProgress ItemStatus = "inProgress"
	ItemDone       ItemStatus = "completed"
	ItemFailed     ItemStatus = "failed"
	ItemUnknown    ItemStatus = "unknown" // a tool call of unknown outcome
)

// Item is a displayable part of a turn: a message, a tool call, a notice.
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
	Title      *CallTitle      `json:"title,omitempty"`    // of the tool call, for people; absent for tools that lashd does not know
	Decision   *CallDecision   `json:"decision,omitempty"` // over the tool call; absent until it is decided
	Output     *ToolOutput     `json:"output,omitempty"`
	DurationMs int64           `json:"durationMs,omitempty"`
	Attachment *Attachment     `json:"attachment,omitempty"`
	Origin     *Origin         `json:"origin,omitempty"`
	Plugin     *PluginNode     `json:"plugin,omitempty"`
	Language   string          `json:"language,omitempty"` // of code; text is its source
	Cell       *CodeResult     `json:"cell,omitempty"`     // result of a code cell; absent while it is in progress
}
