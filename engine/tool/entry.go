package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"lashd/rpc/protocol"
)

// Entry is a tool with what is behind it. It does not change.
type Entry struct {
	Manifest protocol.ToolManifest // with its id, without its schema
	from     *part                 // nil: nothing provides it
	contract *contract
	granted  *grantedCall // nil: the session has the tool itself
}

// part is a provider of a source.
type part struct {
	label    string // whose it is, for people
	provider Provider
	out      atomic.Int32 // calls that were left alone and have not returned
}

// orphan is an entry with nothing behind it.
func orphan(m protocol.ToolManifest) *Entry {
	return &Entry{Manifest: m, contract: &contract{}}
}

// Source is whose tool it is.
func (e *Entry) Source() string {
	if e.from == nil {
		return ""
	}
	return e.from.label
}

// Contract is the tool's contract, which may have to be made. The error is a CallError.
func (e *Entry) Contract() (protocol.ToolContract, error) {
	t, err := e.terms()
	if err != nil {
		return protocol.ToolContract{}, err
	}
	return t.ToolContract, nil
}

func (e *Entry) terms() (*terms, error) {
	t, err := e.contract.of(e.Manifest)
	if err != nil {
		return nil, &CallError{CodeContract, e.Manifest.Name, fmt.Errorf("contract: %w", err)}
	}
	return t, nil
}

// Terms is the contract of an entry that was admitted. If it cannot be had, it is the strictest: never run again, alone.
func (e *Entry) Terms() protocol.ToolContract {
	c, err := e.Contract()
	if err != nil {
		return protocol.ToolContract{Replay: protocol.ReplayNever, Serial: true}
	}
	return c
}

// Validate checks the arguments of a call against the tool's schema. A tool without a schema takes any object, and none takes a string:
// what a model wrote that is no JSON is one. The error is a CallError.
func (e *Entry) Validate(args json.RawMessage) error {
	t, err := e.terms()
	if err != nil {
		return err
	}
	if err := noString(args); err != nil {
		return &CallError{CodeArgs, e.Manifest.Name, err}
	}
	if err := t.schema.validate(args); err != nil {
		return &CallError{CodeArgs, e.Manifest.Name, fmt.Errorf("the arguments do not fit the tool's schema: %w", err)}
	}
	return nil
}

// noString tells what is wrong with arguments that are a string.
func noString(args json.RawMessage) error {
	var text string
	if !bytes.HasPrefix(bytes.TrimSpace(args), []byte{'"'}) || json.Unmarshal(args, &text) != nil {
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return fmt.Errorf("the arguments are no JSON object: %w", err)
	}
	return errNoArguments
}

var errNoArguments = errors.New("the arguments are no JSON object, but a string; or they are nested too deep, or no UTF-8")

// Execute makes a call that was admitted. A call that cannot be made has failed; an error is the provider's own.
func (e *Entry) Execute(ctx context.Context, call Invocation) (Result, error) {
	if e.from == nil {
		return Result{Output: Refusal(&CallError{CodeUnavailable, e.Manifest.Name, ErrOrphan})}, nil
	}
	call, err := e.prepare(ctx, call)
	if _, refused := errors.AsType[*CallError](err); refused {
		return Result{Output: Refusal(err)}, nil
	}
	if err != nil {
		return Result{}, err
	}
	return e.run(ctx, call)
}

// CancelWork tells the provider that what a call has begun outside is to be cancelled.
func (e *Entry) CancelWork(ctx context.Context, call Invocation, key protocol.CompletionKey) error {
	if e == nil || e.from == nil {
		return nil
	}
	if c, ok := e.from.provider.(Canceller); ok {
		call.ToolID = e.Manifest.ID
		return c.CancelWork(ctx, call, key)
	}
	return nil
}

// prepare is a call as the provider wants it.
func (e *Entry) prepare(ctx context.Context, call Invocation) (Invocation, error) {
	call.ToolID, call.Name = e.Manifest.ID, e.Manifest.Name
	p, ok := e.from.provider.(Preparer)
	if !ok {
		return call, nil
	}
	prepared, err := p.Prepare(ctx, call)
	if err != nil {
		return call, fmt.Errorf("prepare: %w", err)
	}
	if prepared.ToolID != call.ToolID {
		return call, &CallError{CodePrepared, call.Name, fmt.Errorf("the provider prepared a call of %q", prepared.ToolID)}
	}
	return prepared, nil
}
