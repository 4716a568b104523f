package engine

import (
	"errors"
	"fmt"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

var (
	// ErrTurnNotActive means that a request names a turn that has ended or is not known.
	ErrTurnNotActive = errors.New("the turn is not running; it has ended or is still queued")
	// ErrSessionInUse means that a change cannot be made while something runs in the session.
	ErrSessionInUse = errors.New("the session is in use by a turn, a command or a call; wait for it or interrupt it")
	ErrToolNotFound = errors.New("the session has no such tool; see tool/list")
	// ErrNoCall means that tool/respond names a call that is not pending for this client.
	ErrNoCall = errors.New("no pending call with this id for this client")
	// ErrNoCompletion means that no call was ever waiting for a completion key.
	ErrNoCompletion = errors.New("no call has this completion key; the key is wrong, or its session was deleted")
	// ErrReloaded means that a request met a state that was dropped. It had no effect.
	ErrReloaded = errors.New("the session was reloaded; nothing was changed, so repeat the request")
	// ErrHistoryMoved means that a summary is outdated. The history is unchanged.
	ErrHistoryMoved = errors.New("messages were appended while the history was being summarised; nothing was changed, so repeat the request")
	// ErrCellInterrupted means that a code cell of a client was interrupted and cannot run again.
	ErrCellInterrupted = errors.New("an earlier request with this idempotency key was interrupted while its code ran, and the code cannot run again; " +
		"the variables are as they were before it, but calls that it made may have had effects")
	ErrShuttingDown = errors.New("lashd is shutting down; connect again and repeat the request")
)

// TurnActiveError means that a request was refused because a turn is running.
type TurnActiveError struct {
	TurnID protocol.TurnID
	// Input is set if the request has an input, which could be queued instead.
	Input bool
}

func (e *TurnActiveError) Error() string {
	if e.Input {
		return fmt.Sprintf("turn %s is running; wait for it, interrupt it, or send the input with whenBusy queue or steer", e.TurnID)
	}
	return fmt.Sprintf("turn %s is running; wait for it, or interrupt it", e.TurnID)
}

// NoCodeError means that a request needs code cells and the session's driver runs none.
type NoCodeError struct {
	Session protocol.SessionID
	Driver  string
}

func (e *NoCodeError) Error() string {
	return fmt.Sprintf("session %s runs no code cells: its driver is %s; start a session with another driver, for example with lash run --driver rlm", e.Session, e.Driver)
}

// GenerationError means that a request was based on tool state that has changed since. Current is
// the present generation.
type GenerationError struct{ Current int64 }

func (e *GenerationError) Error() string {
	return fmt.Sprintf("the tool state has changed and is now at generation %d; read it again", e.Current)
}

// InterruptedError means that a call or an operation was interrupted after it had started, so its
// effects are unknown. The field What names the call or operation, and Err is the reason.
type InterruptedError struct {
	What string
	Err  error
}

func (e *InterruptedError) Error() string {
	why := e.Err.Error()
	switch { // the messages of these errors claim that nothing was changed
	case errors.Is(e.Err, ErrShuttingDown):
		why = "lashd is shutting down"
	case errors.Is(e.Err, ErrReloaded):
		why = "the session was reloaded"
	}
	return fmt.Sprintf("%s was interrupted after it had started, and its effects are unknown: %s", e.What, why)
}

func (e *InterruptedError) Unwrap() error { return e.Err }

// ProviderError means that a model call outside a turn failed.
type ProviderError struct{ Issue protocol.Issue }

func (e *ProviderError) Error() string { return e.Issue.Message }

// isMissing reports whether err means that a row does not exist. Deleted sessions are not included.
func isMissing(err error) bool { return errors.Is(err, persistence.ErrNotFound) }

// isGone reports whether err means that a row does not exist or its session was deleted.
func isGone(err error) bool { return isMissing(err) || errors.Is(err, persistence.ErrDeleted) }

// TaskConflictError means that a task with the requested id exists and does something else.
type TaskConflictError struct{ ID protocol.TaskID }

func (e *TaskConflictError) Error() string {
	return fmt.Sprintf("task %s was started with another spec; choose another id", e.ID)
}

// Kind returns the error kind that plugins see.
func (*TaskConflictError) Kind() protocol.ErrorKind { return protocol.KindConflict }

// TaskEndedError means that a request needs a running task and the task has ended. Task is its
// final state.
type TaskEndedError struct{ Task protocol.Task }

func (e *TaskEndedError) Error() string {
	return fmt.Sprintf("task %s has ended: %s", e.Task.ID, e.Task.State)
}

// Kind returns the error kind that plugins see.
func (*TaskEndedError) Kind() protocol.ErrorKind { return protocol.KindTaskEnded }
