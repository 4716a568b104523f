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

// toolHost gives a running tool access to lashd: progress, artifacts, nested calls and services. It
// serves one attempt of one call. After the attempt, requests that need the turn fail with
// tool.ErrCallOver. A tool may use it from any goroutine.
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

// Progress implements tool.Host: it shows a line of text to subscribers. It is not stored.
func (h *toolHost) Progress(text string) {
	h.maker.feed.Show(protocol.Event{
		Type: protocol.EventToolProgress, TurnID: h.maker.caller.turnID(), Text: text,
		ToolCall: &protocol.ToolCall{CallID: h.call.CallID, Parent: h.call.Parent},
	})
}

// WriteArtifact implements tool.Host. The artifact is stored when it returns, even if ctx is
// cancelled on the way.
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

// Touch implements tool.Host: it copies a file that the tool is about to change. Scans skip some
// files, such as those that git ignores, and undo needs their contents. Paths outside the workspace
// are ignored.
func (h *toolHost) Touch(ctx context.Context, path string) error {
	if filepath.IsLocal(path) {
		h.maker.caller.filePoint().Announce(ctx, filepath.ToSlash(path))
	}
	return nil
}

// Capabilities returns the services for a plugin's tool; plugin.ForTool narrows them to the tool's
// grants.
func (h *toolHost) Capabilities() plugin.Capabilities {
	return h.maker.hooks.capabilitiesFor(authority.Sandboxed(h.call.sandboxed))
}

// Call implements tool.Caller: it makes nested calls and returns their outputs. Only serial tools
// may make them, because nested calls are journaled in order, and nested calls may not make calls
// of their own.
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

// enter begins a use of the turn by the tool, one at a time. The returned context also ends with
// the attempt. The caller calls the returned function when it is done.
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

// keepOpen delays the end of the attempt until leave is called. ok is false if the attempt has
// ended.
func (h *toolHost) keepOpen() (leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, false
	}
	h.uses.Add(1)
	return h.uses.Done, true
}

// give adds to a change that a client gave the call's output, before hooks see it. After a crash
// the next daemon uses it.
func (h *toolHost) give(c *change.Change, out protocol.ToolOutput) {
	row := h.startedRow
	row.ClientOutput = &out
	h.maker.caller.addRow(c, h.call.effectRow(h.maker.caller.journalID(), row))
}

// end closes the host: it rejects new uses of the turn and waits for those in progress.
func (h *toolHost) end() {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.uses.Wait()
}
