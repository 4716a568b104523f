package protocol

// Deferral says how long a pending tool call waits for tool/complete, and what happens after that.
type Deferral struct {
	DeadlineMs int64     `json:"deadlineMs,omitempty"` // counted from when the tool takes the completion key; absent: one day
	OnTimeout  OnTimeout `json:"onTimeout,omitempty"`
	OnCancel   OnCancel  `json:"onCancel,omitempty"`
}

// OnTimeout says what happens when the deadline of a pending call passes.
type OnTimeout string

const (
	TimeoutFailsCall OnTimeout = "failCall" // the call fails and the turn continues; the default
	TimeoutFailsTurn OnTimeout = "failTurn"
)

// OnCancel says what happens to the external work of a pending call when the turn is cancelled.
type OnCancel string

const (
	CancelIgnored OnCancel = "ignore" // it continues; the default
	CancelWork    OnCancel = "cancel" // lashd asks the tool to cancel it
)
