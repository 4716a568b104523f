package protocol

import "encoding/json"

// EventType names what happened. See Durable for which types have a Seq.
type EventType string

const (
	EventTurnAccepted      EventType = "turn/accepted"
	EventTurnStarted       EventType = "turn/started"
	EventTurnCompleted     EventType = "turn/completed"
	EventItemStarted       EventType = "item/started"
	EventItemDelta         EventType = "item/delta"
	EventItemCompleted     EventType = "item/completed"
	EventItemRetracted     EventType = "item/retracted"
	EventModelRequested    EventType = "model/requested"
	EventModelRecorded     EventType = "model/recorded"
	EventInputAccepted     EventType = "input/accepted"
	EventDecisionOpened    EventType = "decision/opened"
	EventDecisionResolved  EventType = "decision/resolved"
	EventToolRequested     EventType = "tool/requested"
	EventToolProgress      EventType = "tool/progress"
	EventRetryStatus       EventType = "retry/status"
	EventPluginStatus      EventType = "plugin/status"
	EventPluginCustom      EventType = "plugin/custom"
	EventFrameOpened       EventType = "frame/opened"
	EventSessionConfigured EventType = "session/configured"
	EventSessionForked     EventType = "session/forked"
	EventSessionRewound    EventType = "session/rewound"
	EventSessionCompacted  EventType = "session/compacted"
	EventToolsChanged      EventType = "tools/changed"
	EventQueueChanged      EventType = "queue/changed"
	EventTaskStarted       EventType = "task/started"
	EventTaskChanged       EventType = "task/changed"
	EventTaskCompleted     EventType = "task/completed"
	EventMonitorUpdate     EventType = "monitor/update"
	EventSnapshotCreated   EventType = "snapshot/created"
	EventUsageUpdated      EventType = "usage/updated"
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
	Boundary  Boundary        `json:"boundary,omitempty"`
	Outcome   *TurnOutcome    `json:"outcome,omitempty"`
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
}

// Durable tells whether events of this type have a Seq. An item/started or item/retracted has one only when it
// concerns a tool call or a turn that failed to finalise; there Seq itself tells.
func (t EventType) Durable() bool {
	switch t {
	case EventTurnStarted, EventModelRequested, EventItemDelta, EventToolProgress, EventRetryStatus:
		return false
	}
	return true
}

// RetryStatus tells that a model call will be tried again.
type RetryStatus struct {
	WaitMs   int64  `json:"waitMs"`
	Attempt  int    `json:"attempt"`
	Attempts int    `json:"maxAttempts"`
	Reason   string `json:"reason"`
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
