package protocol

// TurnCause is why something that no person sent came into a conversation. The model sees each once.
type TurnCause struct {
	ID     string `json:"id"`               // unique in the session
	Type   string `json:"type"`             // such as monitor/line, task/completed or trigger
	Origin string `json:"origin,omitempty"` // who caused it: the id of a task or a trigger
	Text   string `json:"text,omitempty"`   // what the model is told; where an input stands beside it, the text is there
}

// Delivery is when a wake comes to the model.
type Delivery string

const (
	DeliverEarliest  Delivery = "earliestBoundary" // also in the running turn, at its next checkpoint
	DeliverAfterTurn Delivery = "afterTurn"        // in a turn of its own
)

// QueuedWake is what an input has that wakes its session.
type QueuedWake struct {
	Cause       TurnCause `json:"cause"` // its text is that of the input
	Delivery    Delivery  `json:"delivery"`
	Merge       string    `json:"merge,omitempty"` // what may share a turn with others of this key
	ExpiresAtMs int64     `json:"expiresAtMs,omitempty"`
	Stream      string    `json:"stream,omitempty"`  // what wakes in an order
	Ordinal     int64     `json:"ordinal,omitempty"` // in its stream
}

// WakeRefusal is why a wake was not taken, or is not any more.
type WakeRefusal string

const (
	WakeDuplicate  WakeRefusal = "duplicate"       // the session has it already
	WakeTargetGone WakeRefusal = "targetGone"      // there is no such session any more
	WakeExpired    WakeRefusal = "expired"         // it is too late
	WakeRewound    WakeRefusal = "sequenceRewound" // a later one of its stream was taken before
	WakeTooLarge   WakeRefusal = "tooLarge"        // the model could not be told it
)
