package tool

import (
	"context"
	"encoding/json"

	"lashd/rpc/protocol"
)

// Previewer is a Provider that can show what its calls will change in files. The invocations that it gets have no Host, and it
// must not change anything.
type Previewer interface {
	// Preview returns what a call will change, file by file; nil if the tool changes no files. A call that cannot be shown has a file with
	// a Problem instead of a diff. If the call would certainly fail now, fails is its result.
	Preview(ctx context.Context, call Invocation) (files []protocol.FilePreview, fails *protocol.ToolOutput)
	// Choose returns arguments for a call of the same tool that makes only some changes of the preview: those with the given indexes
	// over the hunks of all files. It fails if a file no longer has the content that call.Shown says.
	Choose(ctx context.Context, call Invocation, hunks []int) (json.RawMessage, error)
}

// Preview returns what a call of the tool will change, and its result if it would certainly fail now; nil if that is not known.
func (e *Entry) Preview(ctx context.Context, call Invocation) (files []protocol.FilePreview, fails *protocol.ToolOutput) {
	p, ok := e.previewer()
	if !ok {
		return nil, nil
	}
	call.ToolID, call.Name = e.Manifest.ID, e.Manifest.Name
	if files, fails = p.Preview(ctx, call); fails != nil {
		fails = new(Tidy(*fails))
	}
	return files, fails
}

// Choose returns arguments that make only some changes of a preview. The entry must have shown one.
func (e *Entry) Choose(ctx context.Context, call Invocation, hunks []int) (json.RawMessage, error) {
	p, ok := e.previewer()
	if !ok {
		return nil, &CallError{CodeUnavailable, e.Manifest.Name, ErrNoPreview}
	}
	call.ToolID, call.Name = e.Manifest.ID, e.Manifest.Name
	return p.Choose(ctx, call, hunks)
}

// previewer returns the provider of the tool if it can show changes.
func (e *Entry) previewer() (Previewer, bool) {
	if e.from == nil {
		return nil, false
	}
	p, ok := e.from.provider.(Previewer)
	return p, ok
}
