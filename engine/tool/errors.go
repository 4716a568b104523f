package tool

import (
	"cmp"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// Why a call is refused, in the order in which it is checked.
var (
	ErrUnknown   = errors.New("unknown tool")
	ErrNotMember = errors.New("the tool is switched off")
	ErrOrphan    = errors.New("the tool's source is not registered")
	ErrNoSource  = errors.New("unknown source of tools")
)

var (
	ErrHidden  = errors.New("the session may not use the tool")
	ErrNoGrant = errors.New("the source of the tool takes no grants")
	ErrState   = errors.New("tool state makes no sense")
)

// GenerationError means that a change names a generation which is not the current one.
type GenerationError struct{ Expected, Actual int64 }

func (e *GenerationError) Error() string {
	return fmt.Sprintf("the tool state is of generation %d, not %d", e.Actual, e.Expected)
}

// ConflictError means that two tools have the same id or the same name.
type ConflictError struct {
	Field  string // id or name
	Value  string
	Source string
	Other  string // whose tool was there before; the same as Source if a source conflicts with itself
}

func (e *ConflictError) Error() string {
	if e.Source == e.Other {
		return fmt.Sprintf("%s offers two tools with the %s %q", e.Source, e.Field, e.Value)
	}
	return fmt.Sprintf("%s offers a tool with the %s %q, which is taken by %s", e.Source, e.Field, e.Value, e.Other)
}

// PanicError is a panic of a provider or a contributor.
type PanicError struct {
	Value any // as it was thrown
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// SlowError is a provider that did not say in time what it offers. It was left alone.
type SlowError struct {
	Source string
	Slot   string // what it was asked for
}

func (e *SlowError) Error() string { return fmt.Sprintf("%s: %s does not return", e.Source, e.Slot) }

// guard makes an error of a panic.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Value: p}
	}
}

// Codes of calls that were not made.
const (
	CodeUnavailable = "tool_unavailable"
	CodeContract    = "tool_contract_unavailable"
	CodeArgs        = "invalid_tool_args"
	CodePrepared    = "prepared_tool_id_mismatch"
)

// CallError says why a call was not made.
type CallError struct {
	Code string
	Tool string // as the call names it
	Err  error
}

func (e *CallError) Error() string { return fmt.Sprintf("%s: %v", e.Tool, e.Err) }

func (e *CallError) Unwrap() error { return e.Err }

// Refusal is an error of Admit, Execute or ExecuteGranted as the call's result.
func Refusal(err error) protocol.ToolOutput {
	code := "tool_error"
	if refused, ok := errors.AsType[*CallError](err); ok {
		code = refused.Code
	}
	return protocol.Fail(cmp.Or(classes[code], protocol.FailInternal), code, err.Error(), protocol.FromRuntime)
}

var classes = map[string]protocol.FailureClass{
	CodeUnavailable: protocol.FailInvalidRequest, CodeContract: protocol.FailUnavailable, CodeArgs: protocol.FailInvalidRequest,
}
