package child

import (
	"errors"
	"fmt"
)

// Code says why a call of a plugin failed.
type Code string

const (
	Crashed     Code = "plugin_crashed"     // the process ended, or could not be started
	TimedOut    Code = "plugin_timeout"     // it did not answer in time
	Protocol    Code = "plugin_protocol"    // it said what it may not say
	Failed      Code = "plugin_failed"      // it answered with an error
	Quarantined Code = "plugin_quarantined" // it has crashed too often, and is not started until Resume
	Stopped     Code = "plugin_stopped"     // it was shut down
	Modified    Code = "plugin_modified"    // a program of it is not the one that a person has approved, and was not started
)

// Error is a call of a plugin that failed.
type Error struct {
	Plugin string
	Code   Code
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: plugin %s: %v", e.Code, e.Plugin, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the code of an error of a plugin; one of another kind is a failure.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Failed
}

// ErrLate is the cause with which the time of a call ends.
var ErrLate = errors.New("it did not answer in time")

// Cause is the reason in an Error.
func Cause(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Err
	}
	return err
}
