package protocol

// QueueListResult lists the queued inputs. With all, it also lists the newest completed and cancelled inputs.
type QueueListResult struct {
	Data []QueuedInput `json:"data"`
	Hold QueueHold     `json:"hold"`
}

// QueueHold says why no queued input starts now.
type QueueHold string

const (
	HoldEmpty    QueueHold = "empty"              // the queue is empty
	HoldTurn     QueueHold = "turnRunning"        // a turn is running
	HoldDecision QueueHold = "waitingForDecision" // a turn is waiting for a decision
	HoldCommand  QueueHold = "heldByCommand"      // a command of a plugin or a compaction is using the session
	HoldSpace    QueueHold = "storageFull"        // the disk is full; lashd retries
	HoldRetry    QueueHold = "retryLater"         // the start failed; lashd retries
	HoldForeign  QueueHold = "otherDaemon"        // another daemon has taken over the turn
	HoldStopping QueueHold = "shuttingDown"       // the daemon is stopping
)

// QueueListParams selects the inputs of a session.
type QueueListParams struct {
	SessionID SessionID `json:"sessionId"`
	All       bool      `json:"all,omitempty"`
}

// QueueCancelParams removes an input that has not entered a turn.
type QueueCancelParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	InputID   InputID   `json:"inputId"`
	Suffix    bool      `json:"suffix,omitempty"` // also remove all inputs after it
}

// CancelStatus says whether an input was removed from the queue.
type CancelStatus string

const (
	CancelDone             CancelStatus = "cancelled"
	CancelAlreadyClaimed   CancelStatus = "alreadyClaimed" // it has entered a turn
	CancelAlreadyCompleted CancelStatus = "alreadyCompleted"
	CancelAlreadyCancelled CancelStatus = "alreadyCancelled"
	CancelNotFound         CancelStatus = "notFound"
)

// QueueCancelResult holds the status of each affected input.
type QueueCancelResult struct {
	Data []CancelledInput `json:"data"`
	Seq  Seq              `json:"seq"`
	Replayable
}

// CancelledInput is the status of one input after queue/cancel.
type CancelledInput struct {
	InputID InputID      `json:"inputId"`
	Status  CancelStatus `json:"status"`
}
