package protocol

// QueueListResult are the inputs that no committed turn has consumed; with all, also the newest that ended.
type QueueListResult struct {
	Data []QueuedInput `json:"data"`
	Hold QueueHold     `json:"hold"`
}

// QueueHold is why nothing of a queue starts now.
type QueueHold string

const (
	HoldEmpty    QueueHold = "empty"              // nothing waits
	HoldTurn     QueueHold = "turnRunning"        // a turn does
	HoldDecision QueueHold = "waitingForDecision" // a turn waits for a person
	HoldCommand  QueueHold = "heldByCommand"      // a command, a task of a plugin or a compaction has the session
	HoldSpace    QueueHold = "storageFull"        // it is tried again
	HoldRetry    QueueHold = "retryLater"         // starting it has failed; it is tried again
	HoldForeign  QueueHold = "otherDaemon"        // another daemon has taken the turn over
	HoldStopping QueueHold = "shuttingDown"       // the daemon stops
)

// QueueListParams lists inputs.
type QueueListParams struct {
	SessionID SessionID `json:"sessionId"`
	All       bool      `json:"all,omitempty"`
}

// QueueCancelParams withdraws an input that has not entered a turn.
type QueueCancelParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	InputID   InputID   `json:"inputId"`
	Suffix    bool      `json:"suffix,omitempty"` // and all that came after it
}

// CancelStatus tells what became of the wish to withdraw an input.
type CancelStatus string

const (
	CancelDone             CancelStatus = "cancelled"
	CancelAlreadyClaimed   CancelStatus = "alreadyClaimed"
	CancelAlreadyCompleted CancelStatus = "alreadyCompleted"
	CancelAlreadyCancelled CancelStatus = "alreadyCancelled"
	CancelNotFound         CancelStatus = "notFound"
)

// QueueCancelResult tells it for each input concerned.
type QueueCancelResult struct {
	Data []CancelledInput `json:"data"`
	Seq  Seq              `json:"seq"`
	Replayable
}

// CancelledInput is what became of one input.
type CancelledInput struct {
	InputID InputID      `json:"inputId"`
	Status  CancelStatus `json:"status"`
}
