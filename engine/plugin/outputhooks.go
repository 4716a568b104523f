package plugin

import (
	"context"
	"errors"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// outputHooks process the output of the model and of tools.
type outputHooks struct {
	plugins   *roster
	stream    []contribution[StreamHook]
	response  []contribution[ResponseHook]
	streamEnd []contribution[StreamEndHook]
	project   *contribution[ResultProjector]
	prose     *contribution[ProseProjector]
}

// Streams reports whether any plugin processes text while it streams.
func (o *outputHooks) Streams() bool { return len(o.stream) > 0 }

// Stream passes a piece of text through the stream hooks. Each hook sees only the text of the previous one. Their
// reasoning and events are collected, and if any hook aborts, the reply is aborted.
func (o *outputHooks) Stream(ctx context.Context, chunk StreamChunk) (StreamChunk, error) {
	for _, h := range o.stream {
		next, err := invoke(ctx, o.plugins, HookStream, h.plugin, func() (StreamChunk, error) {
			return h.do(ctx, StreamChunk{Text: chunk.Text})
		})
		if err != nil {
			return StreamChunk{}, err
		}
		chunk = chunk.then(next, h.plugin)
	}
	return chunk, nil
}

// then merges the output of the next hook into c.
func (c StreamChunk) then(next StreamChunk, plugin string) StreamChunk {
	c.Text = next.Text
	c.Reasoning = append(c.Reasoning[:len(c.Reasoning):len(c.Reasoning)], next.Reasoning...)
	c.Events = append(c.Events[:len(c.Events):len(c.Events)], attributed(next.Events, plugin)...)
	c.Abort = c.Abort || next.Abort
	return c
}

// attributed returns copies of the events with their plugin filled in.
func attributed(events []RuntimeEvent, plugin string) []RuntimeEvent {
	events = own(events)
	for i := range events {
		events[i].Plugin = plugin
	}
	return events
}

// HasResponse reports whether any plugin processes complete replies.
func (o *outputHooks) HasResponse() bool { return len(o.response) > 0 }

// Response passes a complete reply through the response hooks and collects their events. Each hook sees the reply
// without events. A sandboxed plugin that adds or changes tool calls or code fails with a HookError: that would let it
// run commands outside of its sandbox.
func (o *outputHooks) Response(ctx context.Context, r Response) (Response, error) {
	for _, h := range o.response {
		next, err := invoke(ctx, o.plugins, HookResponse, h.plugin, func() (Response, error) {
			return h.do(ctx, Response{Parts: own(r.Parts), Stop: r.Stop})
		})
		if o.plugins.Sandboxed(h.plugin) && !authority.KeepsCalls(r.Parts, next.Parts) {
			err = &HookError{h.plugin, HookResponse, errAddsCalls}
		}
		if err != nil {
			return Response{}, err
		}
		next.Events = append(r.Events[:len(r.Events):len(r.Events)], attributed(next.Events, h.plugin)...)
		r = next
	}
	return r, nil
}

var errAddsCalls = errors.New("a sandboxed plugin may not add or change tool calls or code in a reply")

// StreamFinished tells the hooks that a stream has ended. It stops at the first error.
func (o *outputHooks) StreamFinished(ctx context.Context, end StreamEnd) error {
	for _, h := range o.streamEnd {
		if _, err := invoke(ctx, o.plugins, HookStreamEnd, h.plugin, func() (struct{}, error) { return struct{}{}, h.do(ctx, end) }); err != nil {
			return err
		}
	}
	return nil
}

// ProjectResult returns the part of a tool's output that enters the conversation. If the projector fails, the model
// sees its error. If ctx is done before the projector returns, the call counts as cancelled: the raw output may contain
// what the projector would have hidden.
func (o *outputHooks) ProjectResult(ctx context.Context, call *ToolResultContext) protocol.ToolOutput {
	if o.project == nil {
		return call.Output
	}
	out, err := invoke(ctx, o.plugins, HookProjector, o.project.plugin, func() (protocol.ToolOutput, error) {
		return o.project.do(ctx, call.own(HookProjector, call.Args, call.Output))
	})
	switch {
	case err == nil:
		return out
	case ctx.Err() != nil:
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the call was cancelled before its result was ready"}
	}
	return protocol.Fail(protocol.FailInternal, projectorCode(err), err.Error(), protocol.FromPlugin)
}

// projectorCode returns the failure code of a projector's error.
func projectorCode(err error) string {
	if _, panicked := errors.AsType[*PanicError](err); panicked {
		return "projector_panicked"
	}
	return "projector_failed"
}

// Prose returns text as a person sees it. If the projector fails or takes longer than ten seconds, Prose returns the
// text unchanged with the error. It skips a projector whose plugin has an abandoned call.
func (o *outputHooks) Prose(ctx context.Context, text string) (string, error) {
	if text == "" || o.prose == nil || o.plugins.abandoned.has(o.prose.plugin) {
		return text, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, shortTimeout, ErrLate)
	defer cancel()
	shown, err := invoke(ctx, o.plugins, HookProse, o.prose.plugin, func() (string, error) { return o.prose.do(ctx, text) })
	if err != nil {
		return text, err
	}
	return shown, nil
}
