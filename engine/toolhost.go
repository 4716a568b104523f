package engine

import (
	"context"
	"path/filepath"
	"sync"

	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// toolHost is what a tool call may ask of lashd. What it has of its turn it has as long as the call runs.
type toolHost struct {
	maker      *callMaker
	call       *toolCall
	life       context.Context      // ends with the attempt
	startedRow callRow              // the call's journal row as of its start
	output     *protocol.ToolOutput // set by a client that completes the running call; nil: the tool's result counts

	mu   sync.Mutex
	busy bool           // a nested call runs
	over bool           // the attempt has ended
	uses sync.WaitGroup // uses of the turn in progress
}

// Progress implements tool.Host.
func (h *toolHost) Progress(text string) {
	h.maker.feed.Show(protocol.Event{
		Type: protocol.EventToolProgress, TurnID: h.maker.caller.turnID(), Text: text,
		ToolCall: &protocol.ToolCall{CallID: h.call.CallID, Parent: h.call.Parent},
	})
}

// WriteArtifact implements tool.Host.
func (h *toolHost) WriteArtifact(ctx context.Context, mediaType string, data []byte) (protocol.ArtifactRef, error) {
	eng := h.maker.eng
	blob, err := eng.store.PrepareBlob(data)
	if err != nil {
		return protocol.ArtifactRef{}, err
	}
	ref := protocol.ArtifactRef{Digest: blob.Digest, Size: blob.Size, Type: mediaType}
	_, err = do(context.WithoutCancel(ctx), eng, h.maker.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commit(ctx, st.change(persistence.Commit{Blobs: []persistence.Blob{blob}}))
	})
	return ref, err
}

// Touch implements tool.Host. What looks at the workspace leave out, such as what git ignores, is copied before it is changed.
func (h *toolHost) Touch(ctx context.Context, path string) error {
	if filepath.IsLocal(path) {
		h.maker.caller.filePoint().Announce(ctx, filepath.ToSlash(path))
	}
	return nil
}

// Capabilities are those that plugin.ForTool gives a tool its part of.
func (h *toolHost) Capabilities() plugin.Capabilities {
	return h.maker.hooks.capabilitiesFor(authority.Sandboxed(h.call.sandboxed))
}

// Call implements tool.Caller.
func (h *toolHost) Call(ctx context.Context, calls []tool.Request) ([]protocol.ToolOutput, error) {
	switch {
	case h.call.Parent != "":
		return nil, tool.ErrNestedCall
	case !h.call.entry.Terms().Serial:
		return nil, tool.ErrNotSerial
	}
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return h.maker.runNested(ctx, h.call, calls)
}

// enter begins a use of the turn, one at a time. Its context also ends with the call.
func (h *toolHost) enter(ctx context.Context) (context.Context, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
		return nil, nil, tool.ErrCallOver
	case h.busy:
		return nil, nil, tool.ErrCallBusy
	}
	h.busy = true
	h.uses.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
		h.mu.Lock()
		h.busy = false
		h.mu.Unlock()
		h.uses.Done()
	}, nil
}

// stay keeps the call from being over until leave is called, unless it is over already.
func (h *toolHost) keepOpen() (leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, false
	}
	h.uses.Add(1)
	return h.uses.Done, true
}

// give adds to a change that the call has an output, which plugins have not looked at.
func (h *toolHost) give(c *change.Change, out protocol.ToolOutput) {
	row := h.startedRow
	row.ClientOutput = &out
	h.maker.caller.addRow(c, h.call.effectRow(h.maker.caller.journalID(), row))
}

// end waits until the call uses its turn no more, and sees to it that it never will.
func (h *toolHost) end() {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.uses.Wait()
}
