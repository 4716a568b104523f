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

// Entry is a tool that can be called: its manifest, the provider and the contract. It is immutable.
type Entry struct {
	Manifest protocol.ToolManifest // with its id, without its schema
	from     *part                 // nil: no source provides it
	contract *contract
	granted  *grantedCall // nil: an ordinary tool of the session
}

// part is one provider of a source.
type part struct {
	label    string // id of the plugin or client, for messages
	provider Provider
	out      atomic.Int32 // abandoned requests that have not returned
}

// orphan returns an entry without a provider.
func orphan(m protocol.ToolManifest) *Entry {
	return &Entry{Manifest: m, contract: &contract{}}
}

// Source returns the id of the plugin or client that provides the tool, or "".
func (e *Entry) Source() string {
	if e.from == nil {
		return ""
	}
	return e.from.label
}

// Contract returns the tool's contract, and fetches it if necessary. The error is a CallError.
func (e *Entry) Contract() (protocol.ToolContract, error) {
	t, err := e.terms()
	if err != nil {
		return protocol.ToolContract{}, err
	}
	return t.ToolContract, nil
}

// terms is Contract with the compiled schema.
func (e *Entry) terms() (*terms, error) {
	t, err := e.contract.of(e.Manifest)
	if err != nil {
		return nil, &CallError{CodeContract, e.Manifest.Name, fmt.Errorf("contract: %w", err)}
	}
	return t, nil
}

// Terms returns the contract of an admitted entry. If the contract cannot be fetched, it returns the strictest one:
// never run again, not in parallel.
func (e *Entry) Terms() protocol.ToolContract {
	c, err := e.Contract()
	if err != nil {
		return protocol.ToolContract{Replay: protocol.ReplayNever, Serial: true}
	}
	return c
}

// Validate checks the arguments of a call against the tool's schema. A tool without a schema accepts any object. No
// tool accepts a string: arguments that a model wrote with invalid JSON are stored as one. The error is a CallError.
func (e *Entry) Validate(args json.RawMessage) error {
	t, err := e.terms()
	if err != nil {
		return err
	}
	if err := noString(args); err != nil {
		return &CallError{CodeArgs, e.Manifest.Name, err}
	}
	if err := t.schema.validate(args); err != nil {
		return &CallError{CodeArgs, e.Manifest.Name, fmt.Errorf("the arguments do not match the tool's schema: %w", err)}
	}
	// Here, so that a person is not asked about a host that the tool then rejects.
	if err := e.checkHosts(args); err != nil {
		return &CallError{CodeArgs, e.Manifest.Name, err}
	}
	return nil
}

// noString returns an error for arguments that are a string, with the JSON error of its text.
func noString(args json.RawMessage) error {
	var text string
	if !bytes.HasPrefix(bytes.TrimSpace(args), []byte{'"'}) || json.Unmarshal(args, &text) != nil {
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	return errNoArguments
}

var errNoArguments = errors.New("the arguments are not a JSON object: they are a string, nested too deeply, or not UTF-8")

// Execute runs an admitted call. A call that cannot be made returns a failed output; an error means that the provider
// itself failed.
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

// CancelWork asks the provider to cancel external work that a call started. It does nothing for a provider without a
// Canceller. e may be nil.
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

// prepare fills in the tool of the call and lets the provider prepare it.
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
