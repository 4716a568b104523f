package protocol

import "encoding/json"

// TriggerType is something that may happen outside, as a plugin or lashd itself has declared it.
type TriggerType struct {
	Type         string          `json:"type"` // such as mail.new
	ResourceType string          `json:"resourceType"`
	Description  string          `json:"description,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"` // JSON Schema of what comes with it; absent: any object
	Watched      bool            `json:"watched,omitempty"` // lashd itself tells when it happens; trigger/emit does not take it
}

// The types that lashd itself declares.
const (
	TypeCronTick      = "cron.tick"
	TypeFileChanged   = "file.changed"
	TypeManualEmitted = "manual.emitted"
)

// Trigger says what is to be done when something happens outside.
type Trigger struct {
	ID          TriggerID `json:"triggerId"`
	Key         string    `json:"key"`
	SessionID   SessionID `json:"sessionId,omitempty"` // who owns it, and with whom it goes; absent: the user
	Revision    int64     `json:"revision"`            // grows with each update
	Enabled     bool      `json:"enabled"`
	Problem     string    `json:"problem,omitempty"` // why it is not at work, or not as it should be
	CreatedAtMs int64     `json:"createdAtMs"`
	UpdatedAtMs int64     `json:"updatedAtMs"`
	NextAtMs    int64     `json:"nextAtMs,omitempty"` // when its schedule is due
	TriggerSpec
}

// TriggerSpec is what somebody wants of a trigger.
type TriggerSpec struct {
	Source TriggerSource   `json:"source"`
	Filter json.RawMessage `json:"filter,omitempty"` // JSON Schema that the payload must fit; absent: all do
	Action TriggerAction   `json:"action"`
}

// TriggerSource is what a trigger waits for.
type TriggerSource struct {
	Type string      `json:"type"`           // one of trigger/types
	Key  string      `json:"key,omitempty"`  // which one of that type, such as a mailbox; absent: any
	Cron *CronSource `json:"cron,omitempty"` // of cron.tick
	File *FileSource `json:"file,omitempty"` // of file.changed
}

// CronSource says when a schedule is due.
type CronSource struct {
	Schedule string      `json:"schedule"`           // minute, hour, day, month and weekday, as cron has them; or @hourly, @daily, @weekly, @monthly, @yearly, @every 90m
	TimeZone string      `json:"timeZone,omitempty"` // such as Europe/Zurich; absent: that of the machine
	Missed   MissedTicks `json:"missed"`             // what becomes of times at which lashd did not run, or the machine slept
}

// MissedTicks is what becomes of times of a schedule that nobody was there for. One that is less than a minute late, and the
// newest, is not missed.
type MissedTicks string

const (
	MissedSkip    MissedTicks = "skip"    // nothing
	MissedRunOnce MissedTicks = "runOnce" // the newest counts for all
	MissedRunAll  MissedTicks = "runAll"  // each counts; of more than a hundred the newest hundred
)

// FileSource says which files are watched. Changes while lashd does not run are not noticed.
type FileSource struct {
	Glob string `json:"glob"`          // of paths in the directory; * and ? stay within a name, ** crosses directories; without a slash: of names
	Dir  string `json:"dir,omitempty"` // absolute; absent: the workspace of the session that is woken, or of the new one
}

// TriggerActionKind is what a trigger does.
type TriggerActionKind string

const (
	TriggerWakes  TriggerActionKind = "wakeSession"
	TriggerStarts TriggerActionKind = "newSession" // each occurrence begins a session
)

// TriggerAction is what is done when it happens. The model is told the text, and what has happened.
type TriggerAction struct {
	Kind      TriggerActionKind `json:"kind"`
	Text      string            `json:"text"`
	SessionID SessionID         `json:"sessionId,omitempty"` // of wakeSession; absent: the owner
	Delivery  Delivery          `json:"delivery,omitempty"`  // likewise, when the model is told; absent: afterTurn
	Merge     string            `json:"merge,omitempty"`     // likewise: what may share a turn with others of this key; absent: with those of the same trigger
	Session   *TriggerSession   `json:"session,omitempty"`   // of newSession
}

// TriggerSession are the settings of a session that a trigger begins. What is absent is as the daemon is configured.
type TriggerSession struct {
	Cwd      string          `json:"cwd"` // an absolute path to a directory
	Title    string          `json:"title,omitempty"`
	Driver   string          `json:"driver,omitempty"`
	Model    string          `json:"model,omitempty"`
	Prompt   *string         `json:"prompt,omitempty"`
	Budget   *Budget         `json:"budget,omitempty"`
	Approval *ApprovalConfig `json:"approval,omitempty"`
	Options  PluginOptions   `json:"options,omitempty"`
}

// TriggerRegisterParams makes a trigger. Its key is its owner's own.
type TriggerRegisterParams struct {
	Mutation
	Key       string    `json:"key"`
	SessionID SessionID `json:"sessionId,omitempty"` // whose it is; absent: the user's
	Enabled   *bool     `json:"enabled,omitempty"`   // absent: true
	TriggerSpec
}

// TriggerUpdateParams changes a trigger. What is absent stays. Times of its schedule before now are not missed any more.
type TriggerUpdateParams struct {
	Mutation
	Key       string          `json:"key"`
	SessionID SessionID       `json:"sessionId,omitempty"`
	TriggerID TriggerID       `json:"triggerId,omitempty"` // refused if it is another one by now
	Revision  int64           `json:"revision,omitempty"`  // refused if it was updated since
	Enabled   *bool           `json:"enabled,omitempty"`
	Source    *TriggerSource  `json:"source,omitempty"`
	Filter    json.RawMessage `json:"filter,omitempty"` // {} lets everything through
	Action    *TriggerAction  `json:"action,omitempty"`
}

// TriggerDeleteParams ends a trigger. What has occurred before is still delivered.
type TriggerDeleteParams struct {
	Mutation
	Key       string    `json:"key"`
	SessionID SessionID `json:"sessionId,omitempty"`
	TriggerID TriggerID `json:"triggerId,omitempty"` // refused if it is another one by now
	Revision  int64     `json:"revision,omitempty"`  // refused if it was updated since
}

// TriggerResult is the trigger as it is then, or was before it was deleted.
type TriggerResult struct {
	Trigger Trigger `json:"trigger"`
	Replayable
}

// TriggerListParams chooses triggers, in the order in which they were made.
type TriggerListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"` // whose; absent: all
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // 1 to 200; absent: 50
}

// TriggerListResult is a page of triggers.
type TriggerListResult struct {
	Data       []Trigger `json:"data"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// TriggerTypesParams asks what may happen.
type TriggerTypesParams struct {
	Cwd string `json:"cwd,omitempty"` // as the plugins of sessions in there declare it; absent: those of no workspace
}

// TriggerTypesResult are types, by name.
type TriggerTypesResult struct {
	Data []TriggerType `json:"data"`
}

// TriggerEmitParams tells that something has happened.
type TriggerEmitParams struct {
	Mutation
	Type          string          `json:"type"`                    // one of trigger/types
	Cwd           string          `json:"cwd,omitempty"`           // of whose plugins it is one; absent: of those of no workspace
	SourceKey     string          `json:"sourceKey,omitempty"`     // which one of that type it happened to
	OccurrenceKey string          `json:"occurrenceKey,omitempty"` // what makes it the same occurrence, such as the id of a mail; absent: it is another one
	Payload       json.RawMessage `json:"payload,omitempty"`       // an object that fits the type's schema; absent: an empty one
}

// TriggerEmitResult is what the occurrence is to bring about. It is durable; trigger/history tells what has come of it.
type TriggerEmitResult struct {
	Occurrence Occurrence `json:"occurrence"`
	Replayable
}

// Occurrence is something that happened, once.
type Occurrence struct {
	ID         OccurrenceID      `json:"occurrenceId"`
	Type       string            `json:"type"`
	SourceKey  string            `json:"sourceKey,omitempty"`
	Key        string            `json:"occurrenceKey"`
	Payload    json.RawMessage   `json:"payload"`
	AtMs       int64             `json:"atMs"`
	Deliveries []TriggerDelivery `json:"deliveries"`
}

// DeliveryState is what has come of a delivery. All but reserved are final.
type DeliveryState string

const (
	DeliveryReserved   DeliveryState = "reserved"   // it is still to be done
	DeliveryDelivered  DeliveryState = "delivered"  // sessionId has it in its queue, in turnId
	DeliveryRefused    DeliveryState = "refused"    // the session, or the settings of the new one, do not take it: reason
	DeliveryFailed     DeliveryState = "failed"     // reason
	DeliveryTargetGone DeliveryState = "targetGone" // the session is deleted
)

// TriggerDelivery is what an occurrence is to one trigger.
type TriggerDelivery struct {
	TriggerID TriggerID     `json:"triggerId"`
	Key       string        `json:"key"`
	State     DeliveryState `json:"state"`
	SessionID SessionID     `json:"sessionId"` // that is woken, or begun
	TurnID    TurnID        `json:"turnId,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	AtMs      int64         `json:"atMs"` // of the state
}

// TriggerHistoryParams chooses occurrences, newest first.
type TriggerHistoryParams struct {
	TriggerID TriggerID `json:"triggerId,omitempty"` // those that are something to it; absent: all
	Type      string    `json:"type,omitempty"`      // absent: all
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // 1 to 100; absent: 20
}

// TriggerHistoryResult is a page of occurrences. Of each type the newest thousands are kept.
type TriggerHistoryResult struct {
	Data       []Occurrence `json:"data"`
	NextCursor string       `json:"nextCursor,omitempty"`
}
