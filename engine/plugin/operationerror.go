package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
)

// OperationCode says why an operation failed. The values are part of the protocol.
type OperationCode string

const (
	UnknownOperation  OperationCode = "unknown"
	UnknownSession    OperationCode = "unknownSession"
	MissingSession    OperationCode = "missingSession"
	UnexpectedSession OperationCode = "unexpectedSession"
	OperationFailed   OperationCode = "failed"
	// OperationAbandoned means that the operation did not return in time. Its effects are unknown, and it may still be running.
	OperationAbandoned OperationCode = "left"
)

// OperationError means that an operation was not carried out, or failed.
type OperationError struct {
	Code    OperationCode
	Name    string // of the operation; for UnknownSession the id of the session
	Message string // of OperationFailed and OperationAbandoned
	err     error
}

func (e *OperationError) Error() string {
	switch e.Code {
	case UnknownOperation:
		return fmt.Sprintf("no operation %q of this kind; operation/list lists all", e.Name)
	case UnknownSession:
		return fmt.Sprintf("session %q is not open", e.Name)
	case MissingSession:
		return fmt.Sprintf("operation %q requires a session", e.Name)
	case UnexpectedSession:
		return fmt.Sprintf("operation %q does not take a session", e.Name)
	default:
		return fmt.Sprintf("operation %q: %s", e.Name, e.Message)
	}
}

func (e *OperationError) Unwrap() error { return e.err }

// failed returns an OperationError that wraps err.
func failed(name string, err error) *OperationError {
	return &OperationError{OperationFailed, name, err.Error(), err}
}

// changeFailure returns the error of a failed command or task. It distinguishes those that were abandoned, which may still
// take effect.
func changeFailure(name string, err error) *OperationError {
	e := failed(name, err)
	if errors.As(err, new(*AbandonedError)) || errors.Is(err, ErrSlowHook) {
		e.Code = OperationAbandoned
	}
	return e
}

var (
	errOutput   = errors.New("the output is not valid JSON")
	errNoResult = errors.New("the operation returned no result")
	errInput    = errors.New("a queued turn has no input")
)

// validOutput returns an output that can be sent to a client; an empty one becomes null.
func validOutput(out json.RawMessage) (json.RawMessage, error) {
	switch {
	case len(out) == 0:
		return json.RawMessage("null"), nil
	case !json.Valid(out):
		return nil, errOutput
	default:
		return out, nil
	}
}

// checked checks a result and returns a copy with a valid output.
func (r *OperationResult) checked() (*OperationResult, error) {
	if r == nil {
		return nil, errNoResult
	}
	out, err := validOutput(r.Output)
	if err != nil {
		return nil, err
	}
	for _, e := range r.Events {
		if e.Type == "" || !json.Valid(e.Body) {
			return nil, fmt.Errorf("event %q needs a type and a JSON body", e.Type)
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

// arguments returns a copy of args; without any it returns an empty object.
func arguments(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return own(args)
}
