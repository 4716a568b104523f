package engine

import (
	"errors"
	"fmt"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

var (
	ErrTurnNotActive = errors.New("the turn is not running")
	ErrSessionInUse  = errors.New("a turn, a command or a call uses the session; interrupt it or wait for it first")
	ErrModelNotFound = errors.New("no such model")
	ErrToolNotFound  = errors.New("no such tool in the session's catalog; tool/list names those there are")
	ErrNoCall        = errors.New("no call of that id waits for this client")
	ErrNoCompletion  = errors.New("no call waits, or waited, for a completion with that key: it is wrong, or was revoked with its session")
	ErrReloaded      = errors.New("the session had to be loaded again; nothing was changed, so repeat the request")
	ErrHistoryMoved  = errors.New("messages were appended while history was summarised; nothing was changed, so repeat the request")
	ErrShuttingDown  = errors.New("lashd is shutting down; connect again and repeat the request")
)

// TurnActiveError means that a turn runs which the request will not wait for.
type TurnActiveError struct {
	TurnID protocol.TurnID
	Input  bool // the request has an input, which may wait
}

func (e *TurnActiveError) Error() string {
	if e.Input {
		return fmt.Sprintf("turn %s is running; wait for it, interrupt it, or send the input with whenBusy queue or steer", e.TurnID)
	}
	return fmt.Sprintf("turn %s is running; wait for it, or interrupt it", e.TurnID)
}

// GenerationError means that tool state was changed by somebody else meanwhile.
type GenerationError struct{ Current int64 }

func (e *GenerationError) Error() string {
	return fmt.Sprintf("the tool state is of generation %d by now; read it again", e.Current)
}

// InterruptedError means that something came between a call or an operation and its end, after it had begun: nobody knows what it did.
type InterruptedError struct {
	What string
	Err  error
}

func (e *InterruptedError) Error() string {
	why := e.Err.Error()
	switch { // the others say that nothing was changed
	case errors.Is(e.Err, ErrShuttingDown):
		why = "lashd is shutting down"
	case errors.Is(e.Err, ErrReloaded):
		why = "the session had to be loaded again"
	}
	return fmt.Sprintf("%s was interrupted after it had begun, and nobody knows what it did: %s", e.What, why)
}

func (e *InterruptedError) Unwrap() error { return e.Err }

// ProviderError is a model call outside of a turn that failed.
type ProviderError struct{ Issue protocol.Issue }

func (e *ProviderError) Error() string { return e.Issue.Message }

func isMissing(err error) bool { return errors.Is(err, persistence.ErrNotFound) }

func isGone(err error) bool { return isMissing(err) || errors.Is(err, persistence.ErrDeleted) }

// TaskConflictError means that a task of that id was started to do something else.
type TaskConflictError struct{ ID protocol.TaskID }

func (e *TaskConflictError) Error() string {
	return fmt.Sprintf("task %s was started with another spec; choose another id", e.ID)
}

// Kind is its word for plugins.
func (*TaskConflictError) Kind() protocol.ErrorKind { return protocol.KindConflict }

// TaskEndedError means that a task is over.
type TaskEndedError struct{ Task protocol.Task }

func (e *TaskEndedError) Error() string {
	return fmt.Sprintf("task %s is over: %s", e.Task.ID, e.Task.State)
}

// Kind is its word for plugins.
func (*TaskEndedError) Kind() protocol.ErrorKind { return protocol.KindTaskEnded }
