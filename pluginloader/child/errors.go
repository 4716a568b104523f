package child

import (
	"errors"
	"fmt"
)

// Code classifies a failed call of a plugin. Clients see it as the code of a failed tool call.
type Code string

const (
	// Codes of an Error.
	Crashed     Code = "plugin_crashed"
	TimedOut    Code = "plugin_timeout"     // the plugin did not answer in time
	Protocol    Code = "plugin_protocol"    // the plugin broke the protocol
	Failed      Code = "plugin_failed"      // the plugin answered with an error
	Quarantined Code = "plugin_quarantined" // the plugin crashed too often and is not started until Resume
	Stopped     Code = "plugin_stopped"     // lashd shut the plugin down
	Modified    Code = "plugin_modified"    // a program differs from the approved one, and was not started
)

// Error is a failed call of a plugin, with the plugin's name and the class of the failure. Err says
// what failed, without naming the plugin.
type Error struct {
	Plugin string
	Code   Code
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: plugin %s: %v", e.Code, e.Plugin, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of an Error anywhere in the chain of err. For every other error, also
// nil, it returns Failed.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Failed
}

// ErrLate is the cancellation cause of a context whose call has used up its time. It tells a
// timeout of the call from a cancellation by its caller.
var ErrLate = errors.New("it did not answer in time")

// Cause returns the error inside an Error, or err itself if there is none.
func Cause(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Err
	}
	return err
}
