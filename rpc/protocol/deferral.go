package protocol

// Deferral says how long a call waits for its completion, and what becomes of it without one.
type Deferral struct {
	DeadlineMs int64     `json:"deadlineMs,omitempty"` // from when the key is taken; absent: a day
	OnTimeout  OnTimeout `json:"onTimeout,omitempty"`
	OnCancel   OnCancel  `json:"onCancel,omitempty"`
}

// OnTimeout is what a passed deadline means for the turn of a call.
type OnTimeout string

const (
	TimeoutFailsCall OnTimeout = "failCall" // the default: the model reads of it
	TimeoutFailsTurn OnTimeout = "failTurn"
)

// OnCancel is what becomes of the work outside when the turn is cancelled.
type OnCancel string

const (
	CancelIgnored OnCancel = "ignore" // the default: it goes on
	CancelWork    OnCancel = "cancel" // its tool is told to cancel it
)
