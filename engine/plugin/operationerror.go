package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
)

// OperationCode says why an operation was not done.
type OperationCode string

const (
	UnknownOperation  OperationCode = "unknown"
	UnknownSession    OperationCode = "unknownSession"
	MissingSession    OperationCode = "missingSession"
	UnexpectedSession OperationCode = "unexpectedSession"
	OperationFailed   OperationCode = "failed"
	OperationLeft     OperationCode = "left" // it did not return in time: nobody knows what it did or still does
)

// OperationError is an operation that was not done. Name is that of the operation, or of the session that is not known.
type OperationError struct {
	Code    OperationCode
	Name    string
	Message string // of failed and left
	err     error
}

func (e *OperationError) Error() string {
	switch e.Code {
	case UnknownOperation:
		return fmt.Sprintf("there is no operation %q of this kind", e.Name)
	case UnknownSession:
		return fmt.Sprintf("the session %q is not open", e.Name)
	case MissingSession:
		return fmt.Sprintf("the operation %q needs a session", e.Name)
	case UnexpectedSession:
		return fmt.Sprintf("the operation %q takes no session", e.Name)
	default:
		return fmt.Sprintf("operation %q: %s", e.Name, e.Message)
	}
}

func (e *OperationError) Unwrap() error { return e.err }

func failed(name string, err error) *OperationError {
	return &OperationError{OperationFailed, name, err.Error(), err}
}

// undone is why a command or a task has failed.
func undone(name string, err error) *OperationError {
	e := failed(name, err)
	if errors.As(err, new(*LeftError)) || errors.Is(err, ErrSlowHook) {
		e.Code = OperationLeft
	}
	return e
}

var (
	errOutput   = errors.New("the output is not JSON")
	errNoResult = errors.New("there is no result")
	errInput    = errors.New("a turn to queue has no input")
)

// whole is an output that can be sent.
func whole(out json.RawMessage) (json.RawMessage, error) {
	switch {
	case len(out) == 0:
		return json.RawMessage("null"), nil
	case !json.Valid(out):
		return nil, errOutput
	default:
		return out, nil
	}
}

func (r *OperationResult) whole() (*OperationResult, error) {
	if r == nil {
		return nil, errNoResult
	}
	out, err := whole(r.Output)
	if err != nil {
		return nil, err
	}
	for _, e := range r.Events {
		if e.Type == "" || !json.Valid(e.Body) {
			return nil, fmt.Errorf("the event %q is not JSON with a type", e.Type)
		}
	}
	for _, q := range r.Queue {
		if len(q.Input) == 0 {
			return nil, errInput
		}
	}
	mine := *r
	mine.Output = out
	return &mine, nil
}

// arguments are those of a call; without any, an empty object.
func arguments(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return own(args)
}
