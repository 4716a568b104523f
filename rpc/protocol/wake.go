package protocol

// TurnCause is the cause of a wake. The model sees each cause once.
type TurnCause struct {
	ID     string `json:"id"`               // unique in the session
	Type   string `json:"type"`             // such as monitor/line, task/completed or trigger
	Origin string `json:"origin,omitempty"` // id of the task or trigger that caused it
	Text   string `json:"text,omitempty"`   // text for the model; absent if an input next to it holds the text
}

// Delivery says when the model receives a wake.
type Delivery string

const (
	DeliverEarliest  Delivery = "earliestBoundary" // at the next checkpoint, even of a running turn
	DeliverAfterTurn Delivery = "afterTurn"        // in a turn of its own, after the running one
)

// QueuedWake holds the details of an input that is a wake.
type QueuedWake struct {
	Cause       TurnCause `json:"cause"` // without text; the input holds the text
	Delivery    Delivery  `json:"delivery"`
	Merge       string    `json:"merge,omitempty"` // queued wakes with the same key may share a turn
	ExpiresAtMs int64     `json:"expiresAtMs,omitempty"`
	Stream      string    `json:"stream,omitempty"`  // name of an ordered series of wakes
	Ordinal     int64     `json:"ordinal,omitempty"` // position in the stream
}

// WakeRefusal says why a wake was not delivered.
type WakeRefusal string

const (
	WakeDuplicate  WakeRefusal = "duplicate"       // the session already has it
	WakeTargetGone WakeRefusal = "targetGone"      // the session was deleted
	WakeExpired    WakeRefusal = "expired"         // it expired before it was delivered
	WakeRewound    WakeRefusal = "sequenceRewound" // a later wake of its stream was delivered first
	WakeTooLarge   WakeRefusal = "tooLarge"        // it is too large for the model
)
