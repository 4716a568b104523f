package plugin

import (
	"context"
	"errors"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// outputHooks act on what the model and its tools put out.
type outputHooks struct {
	plugins   *roster
	stream    []contribution[StreamHook]
	response  []contribution[ResponseHook]
	streamEnd []contribution[StreamEndHook]
	project   *contribution[ResultProjector]
	prose     *contribution[ProseProjector]
}

// Streams tells whether anything acts on text while it comes in.
func (o *outputHooks) Streams() bool { return len(o.stream) > 0 }

// Stream is a piece of text as observers see it. Each hook gets the text as the one before it left it, and nothing else of
// the chunk; what they add is collected, and one of them is enough to stop the reply.
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

func (c StreamChunk) then(next StreamChunk, plugin string) StreamChunk {
	c.Text = next.Text
	c.Reasoning = append(c.Reasoning[:len(c.Reasoning):len(c.Reasoning)], next.Reasoning...)
	c.Events = append(c.Events[:len(c.Events):len(c.Events)], attributed(next.Events, plugin)...)
	c.Abort = c.Abort || next.Abort
	return c
}

// attributed are events with the plugin whose they are.
func attributed(events []RuntimeEvent, plugin string) []RuntimeEvent {
	events = own(events)
	for i := range events {
		events[i].Plugin = plugin
	}
	return events
}

// HasResponse tells whether anything acts on complete replies.
func (o *outputHooks) HasResponse() bool { return len(o.response) > 0 }

// Response is a complete reply as the hooks leave it, with the events of all of them. Each hook gets a reply without events. A plugin in a
// sandbox that adds or changes what the reply has run fails with a HookError.
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

var errAddsCalls = errors.New("a plugin in a sandbox may not add tool calls or code to a reply, nor change them")

// StreamFinished tells the hooks that a stream has ended; the first error stops that.
func (o *outputHooks) StreamFinished(ctx context.Context, end StreamEnd) error {
	for _, h := range o.streamEnd {
		if _, err := invoke(ctx, o.plugins, HookStreamEnd, h.plugin, func() (struct{}, error) { return struct{}{}, h.do(ctx, end) }); err != nil {
			return err
		}
	}
	return nil
}

// ProjectResult is a tool's output as it enters the conversation. If the projector fails, the model reads its error. If ctx is done
// before the projector returns, the call counts as cancelled: its output may hold what the projector would have hidden.
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
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the call was cancelled before its result was ready to be shown"}
	}
	return protocol.Fail(protocol.FailInternal, projectorCode(err), err.Error(), protocol.FromPlugin)
}

func projectorCode(err error) string {
	if _, panicked := errors.AsType[*PanicError](err); panicked {
		return "projector_panicked"
	}
	return "projector_failed"
}

// Prose is text as a person sees it. A projector that fails, or takes longer than ten seconds, leaves it as it is; one of a
// plugin that was left alone is not asked.
func (o *outputHooks) Prose(ctx context.Context, text string) (string, error) {
	if text == "" || o.prose == nil || o.plugins.abandoned.has(o.prose.plugin) {
		return text, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, shortPatience, ErrLate)
	defer cancel()
	shown, err := invoke(ctx, o.plugins, HookProse, o.prose.plugin, func() (string, error) { return o.prose.do(ctx, text) })
	if err != nil {
		return text, err
	}
	return shown, nil
}
