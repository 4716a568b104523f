package tool

import (
	"cmp"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// Reasons why a call is refused. Execute checks them in this order.
var (
	ErrUnknown   = errors.New("unknown tool")
	ErrNotMember = errors.New("the tool is switched off")
	ErrNoPreview = errors.New("the tool cannot show what it will change")
	ErrOrphan    = errors.New("the tool's source is not registered")
	ErrNoSource  = errors.New("unknown tool source")
)

// Errors of grants and of tool state.
var (
	ErrHidden  = errors.New("the session may not use the tool")
	ErrNoGrant = errors.New("the tool's source does not accept grants")
	ErrState   = errors.New("invalid tool state")
)

// WorkspaceElsewhere is the code of the failure of a call in a session whose workspace leads elsewhere. See pathresolve.ElsewhereError.
const WorkspaceElsewhere = "workspace_elsewhere"

// GenerationError means that a change is based on an outdated generation. Read the state again and retry.
type GenerationError struct{ Expected, Actual int64 }

func (e *GenerationError) Error() string {
	return fmt.Sprintf("the tool state has generation %d, not %d; read it again", e.Actual, e.Expected)
}

// ConflictError means that two tools have the same id or the same name.
type ConflictError struct {
	Field  string // "id" or "name"
	Value  string
	Source string // of the rejected tool
	Other  string // of the existing tool; equals Source if a source conflicts with itself
}

func (e *ConflictError) Error() string {
	if e.Source == e.Other {
		return fmt.Sprintf("%s offers two tools with the %s %q", e.Source, e.Field, e.Value)
	}
	return fmt.Sprintf("%s offers a tool with the %s %q, which is taken by %s", e.Source, e.Field, e.Value, e.Other)
}

// PanicError is a panic of a provider or contributor.
type PanicError struct {
	Value any // the value passed to panic
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// SlowError means that a provider did not answer in time and was abandoned.
type SlowError struct {
	Source string
	Slot   string // the request: tools, resolve or contract
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("%s: %s did not return in time", e.Source, e.Slot)
}

// guard converts a panic to a PanicError. Call it deferred.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Value: p}
	}
}

// Failure codes of calls that were not made.
const (
	CodeUnavailable = "tool_unavailable"
	CodeContract    = "tool_contract_unavailable"
	CodeArgs        = "invalid_tool_args"
	CodePrepared    = "prepared_tool_id_mismatch"
)

// CallError means that a call was not made.
type CallError struct {
	Code string
	Tool string // as the call names it
	Err  error
}

func (e *CallError) Error() string { return fmt.Sprintf("%s: %v", e.Tool, e.Err) }

func (e *CallError) Unwrap() error { return e.Err }

// Refusal returns an error of Admit, Execute or Granted as the output of the call. The model reads its text.
func Refusal(err error) protocol.ToolOutput {
	code := "tool_error"
	if refused, ok := errors.AsType[*CallError](err); ok {
		code = refused.Code
	}
	return protocol.Fail(cmp.Or(classes[code], protocol.FailInternal), code, err.Error(), protocol.FromRuntime)
}

// classes maps codes to failure classes. Other codes are internal failures.
var classes = map[string]protocol.FailureClass{
	CodeUnavailable: protocol.FailInvalidRequest, CodeContract: protocol.FailUnavailable, CodeArgs: protocol.FailInvalidRequest,
}
