package protocol

import "encoding/json"

// TriggerType is a type of event that triggers can wait for, declared by a plugin or by lashd.
type TriggerType struct {
	Type         string          `json:"type"` // such as mail.new
	ResourceType string          `json:"resourceType"`
	Description  string          `json:"description,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"` // JSON Schema of the payload; absent: any object
	Watched      bool            `json:"watched,omitempty"` // only lashd emits it; trigger/emit rejects it
}

// Event types of lashd itself.
const (
	TypeCronTick      = "cron.tick"
	TypeFileChanged   = "file.changed"
	TypeManualEmitted = "manual.emitted"
)

// Trigger is a rule that wakes or starts a session when an event happens.
type Trigger struct {
	ID          TriggerID `json:"triggerId"`
	Key         string    `json:"key"`
	SessionID   SessionID `json:"sessionId,omitempty"` // the owner, with which it is deleted; absent: the user
	Revision    int64     `json:"revision"`            // increases with each update
	Enabled     bool      `json:"enabled"`
	Problem     string    `json:"problem,omitempty"` // why it does not work, or not fully
	CreatedAtMs int64     `json:"createdAtMs"`
	UpdatedAtMs int64     `json:"updatedAtMs"`
	NextAtMs    int64     `json:"nextAtMs,omitempty"` // next time of its schedule
	TriggerSpec
}

// TriggerSpec is the configuration of a trigger.
type TriggerSpec struct {
	Source TriggerSource   `json:"source"`
	Filter json.RawMessage `json:"filter,omitempty"` // JSON Schema that the payload must match; absent: any payload
	Action TriggerAction   `json:"action"`
}

// TriggerSource says which events fire a trigger.
type TriggerSource struct {
	Type string      `json:"type"`           // a type from trigger/types
	Key  string      `json:"key,omitempty"`  // a source of that type, such as a mailbox; absent: any source
	Cron *CronSource `json:"cron,omitempty"` // for cron.tick
	File *FileSource `json:"file,omitempty"` // for file.changed
}

// CronSource is a schedule.
type CronSource struct {
	Schedule string      `json:"schedule"`           // the five fields of cron: minute, hour, day, month and weekday; or @hourly, @daily, @weekly, @monthly, @yearly, @every 90m
	TimeZone string      `json:"timeZone,omitempty"` // such as Europe/Zurich; absent: the machine's time zone
	Missed   MissedTicks `json:"missed"`             // what to do about times at which lashd was not running or the machine was asleep
}

// MissedTicks says what to do about missed times of a schedule. The newest time is not missed if it is less than a minute late.
type MissedTicks string

const (
	MissedSkip    MissedTicks = "skip"    // ignore them
	MissedRunOnce MissedTicks = "runOnce" // fire once, for the newest one
	MissedRunAll  MissedTicks = "runAll"  // fire for each, at most for the newest 100
)

// FileSource says which files to watch. lashd does not notice changes made while it is not running.
type FileSource struct {
	Glob string `json:"glob"`          // matches paths in the directory; * and ? match within a name, ** across directories. A pattern without a slash matches file names
	Dir  string `json:"dir,omitempty"` // absolute path; absent: the workspace of the session that is woken or started
}

// TriggerActionKind says what a trigger does.
type TriggerActionKind string

const (
	TriggerWakes  TriggerActionKind = "wakeSession" // wakes a session
	TriggerStarts TriggerActionKind = "newSession"  // starts a new session for each event
)

// TriggerAction is the action of a trigger. The model receives the text and the event.
type TriggerAction struct {
	Kind      TriggerActionKind `json:"kind"`
	Text      string            `json:"text"`
	SessionID SessionID         `json:"sessionId,omitempty"` // for wakeSession; absent: the owner
	Delivery  Delivery          `json:"delivery,omitempty"`  // for wakeSession: when the model receives it; absent: afterTurn
	Merge     string            `json:"merge,omitempty"`     // for wakeSession: wakes with the same key may share a turn; absent: wakes of the same trigger may
	Session   *TriggerSession   `json:"session,omitempty"`   // for newSession
}

// TriggerSession holds the settings of a session that a trigger starts. Absent settings are the daemon's defaults.
type TriggerSession struct {
	Cwd      string          `json:"cwd"` // absolute path of a directory
	Title    string          `json:"title,omitempty"`
	Driver   string          `json:"driver,omitempty"`
	Model    string          `json:"model,omitempty"`
	Effort   *string         `json:"effort,omitempty"` // reasoning effort, as in session/new
	Prompt   *string         `json:"prompt,omitempty"`
	Budget   *Budget         `json:"budget,omitempty"`
	Approval *ApprovalConfig `json:"approval,omitempty"`
	Options  PluginOptions   `json:"options,omitempty"`
}

// TriggerRegisterParams creates a trigger.
type TriggerRegisterParams struct {
	Mutation
	Key       string    `json:"key"`                 // unique per owner
	SessionID SessionID `json:"sessionId,omitempty"` // the owner; absent: the user
	Enabled   *bool     `json:"enabled,omitempty"`   // absent: true
	TriggerSpec
}

// TriggerUpdateParams changes a trigger. Absent members stay unchanged. Earlier times of its schedule no longer count as missed.
type TriggerUpdateParams struct {
	Mutation
	Key       string          `json:"key"`
	SessionID SessionID       `json:"sessionId,omitempty"`
	TriggerID TriggerID       `json:"triggerId,omitempty"` // fail if the key now belongs to a trigger with another id
	Revision  int64           `json:"revision,omitempty"`  // fail if the trigger was updated since
	Enabled   *bool           `json:"enabled,omitempty"`
	Source    *TriggerSource  `json:"source,omitempty"`
	Filter    json.RawMessage `json:"filter,omitempty"` // {} removes the filter
	Action    *TriggerAction  `json:"action,omitempty"`
}

// TriggerDeleteParams deletes a trigger. Earlier events are still delivered.
type TriggerDeleteParams struct {
	Mutation
	Key       string    `json:"key"`
	SessionID SessionID `json:"sessionId,omitempty"`
	TriggerID TriggerID `json:"triggerId,omitempty"` // fail if the key now belongs to a trigger with another id
	Revision  int64     `json:"revision,omitempty"`  // fail if the trigger was updated since
}

// TriggerResult is the trigger after the change, or before its deletion.
type TriggerResult struct {
	Trigger Trigger `json:"trigger"`
	Replayable
}

// TriggerListParams selects triggers. The result is sorted by creation, oldest first.
type TriggerListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"` // the owner; absent: all triggers
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // 1 to 200; absent: 50
}

// TriggerListResult is a page of triggers.
type TriggerListResult struct {
	Data       []Trigger `json:"data"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// TriggerTypesParams selects the event types that triggers can wait for.
type TriggerTypesParams struct {
	Cwd string `json:"cwd,omitempty"` // include the plugins of this workspace; absent: no workspace plugins
}

// TriggerTypesResult lists event types, sorted by name.
type TriggerTypesResult struct {
	Data []TriggerType `json:"data"`
}

// TriggerEmitParams emits an event for triggers.
type TriggerEmitParams struct {
	Mutation
	Type          string          `json:"type"`                    // a type from trigger/types
	Cwd           string          `json:"cwd,omitempty"`           // workspace whose plugins declare the type; absent: no workspace plugins
	SourceKey     string          `json:"sourceKey,omitempty"`     // the source of the event, such as a mailbox
	OccurrenceKey string          `json:"occurrenceKey,omitempty"` // identifies the event, such as the id of a mail; emitting the same key again has no effect. Absent: a new event
	Payload       json.RawMessage `json:"payload,omitempty"`       // an object that matches the type's schema; absent: an empty object
}

// TriggerEmitResult is the stored event with its planned deliveries. trigger/history reports their progress.
type TriggerEmitResult struct {
	Occurrence Occurrence `json:"occurrence"`
	Replayable
}

// Occurrence is one emitted event with its deliveries to triggers.
type Occurrence struct {
	ID         OccurrenceID      `json:"occurrenceId"`
	Type       string            `json:"type"`
	SourceKey  string            `json:"sourceKey,omitempty"`
	Key        string            `json:"occurrenceKey"`
	Payload    json.RawMessage   `json:"payload"`
	AtMs       int64             `json:"atMs"`
	Deliveries []TriggerDelivery `json:"deliveries"`
}

// DeliveryState is the state of a delivery. All but reserved are final.
type DeliveryState string

const (
	DeliveryReserved   DeliveryState = "reserved"   // pending; lashd retries it until it succeeds or is refused
	DeliveryDelivered  DeliveryState = "delivered"  // stored in the queue of sessionId, for turnId
	DeliveryRefused    DeliveryState = "refused"    // rejected by the session or because of the new session's settings: reason
	DeliveryFailed     DeliveryState = "failed"     // failed permanently: reason
	DeliveryTargetGone DeliveryState = "targetGone" // the session was deleted
)

// TriggerDelivery is the delivery of an event for one trigger.
type TriggerDelivery struct {
	TriggerID TriggerID     `json:"triggerId"`
	Key       string        `json:"key"`
	State     DeliveryState `json:"state"`
	SessionID SessionID     `json:"sessionId"` // the session that is woken or started
	TurnID    TurnID        `json:"turnId,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	AtMs      int64         `json:"atMs"` // time of the last change of state
}

// TriggerHistoryParams selects emitted events. The result is sorted newest first.
type TriggerHistoryParams struct {
	TriggerID TriggerID `json:"triggerId,omitempty"` // only events for this trigger; absent: all
	Type      string    `json:"type,omitempty"`      // absent: all
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // 1 to 100; absent: 20
}

// TriggerHistoryResult is a page of emitted events. lashd keeps at least the newest 10,000 events of each type.
type TriggerHistoryResult struct {
	Data       []Occurrence `json:"data"`
	NextCursor string       `json:"nextCursor,omitempty"`
}
