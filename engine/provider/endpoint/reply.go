package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Decoder turns the events of one answer into calls of Reply. There is one for each call; it belongs to the goroutine that reads.
// Its methods return the errors of Reply's methods as they are.
type Decoder interface {
	// Event takes the data of one event, without "data:". The bytes are valid until it returns. io.EOF means that the event
	// is the API's last one, so nothing after it is read.
	Event(data []byte, r *Reply) error

	// Finish passes on what is complete only now that the reply has ended well, such as calls that were still being gathered.
	Finish(r *Reply) error
}

// WholeDecoder is a Decoder of an API whose servers may also answer in one piece of JSON.
type WholeDecoder interface {
	Decoder

	// Whole takes such an answer.
	Whole(data []byte, r *Reply) error
}

// settleTime is how long to wait for the usage, or for the end of the answer, once the reply is known to be complete.
const settleTime = 5 * time.Second

// Reply receives the parts of one reply from its Decoder and passes them to the reader as chunks. It keeps the reply within the
// limits of a provider.Meter. An error of its methods ends the reply: the Decoder returns it at once.
type Reply struct {
	answer  *answer // the body, and the timers that bound its reads
	model   *protocol.ModelSpec
	decoder Decoder
	yield   func(provider.Chunk, error) bool // on the goroutine of the reader; false: it wants no more

	meter  provider.Meter        // counts what was sent
	usage  *protocol.Usage       // as last reported
	served protocol.CallEvidence // as last reported
	stop   protocol.StopReason   // set once the API's evidence of a complete reply was seen
	output bool                  // the model wrote something
	called bool                  // the model called a tool
}

// Text adds a delta of the answer.
func (r *Reply) Text(delta string) error { return r.delta(provider.Chunk{Text: delta}, delta) }

// Commentary adds a delta of text that the API marks as not yet the answer.
func (r *Reply) Commentary(delta string) error {
	return r.delta(provider.Chunk{Commentary: delta}, delta)
}

// Reasoning adds a delta of the model's reasoning.
func (r *Reply) Reasoning(delta string) error {
	return r.delta(provider.Chunk{Reasoning: delta}, delta)
}

// delta sends a delta unless it is empty.
func (r *Reply) delta(c provider.Chunk, text string) error {
	if text == "" {
		return nil
	}
	r.output = true
	return r.send(c)
}

// Call adds a complete tool call. args may be anything that the model wrote: what is not JSON becomes a string, which no tool accepts.
func (r *Reply) Call(id, name string, args []byte) error { return r.CallWith(id, name, args, nil, "") }

// CallWith is Call for a call that carries replay state of a route.
func (r *Reply) CallWith(id, name string, args []byte, replay json.RawMessage, route string) error {
	r.output, r.called = true, true
	call := &protocol.ToolCall{CallID: protocol.CallID(id), Name: name, Args: provider.Arguments(bytes.TrimSpace(bytes.Clone(args)))}
	return r.send(provider.Chunk{Part: &protocol.Part{Kind: protocol.PartToolCall, Call: call, Replay: replay, Route: route}})
}

// Replay attaches replay state to the part that the last delta belongs to.
// State that is not valid JSON is not stored.
func (r *Reply) Replay(state json.RawMessage, route string) error {
	return r.send(provider.Chunk{Replay: state, Route: route})
}

// Hidden adds a part without text that only carries replay state, such as encrypted reasoning.
func (r *Reply) Hidden(kind protocol.PartKind, state json.RawMessage, route string) error {
	return r.send(provider.Chunk{Part: &protocol.Part{Kind: kind, Replay: state, Route: route}})
}

// Usage notes the tokens of the call; nil changes nothing. The last report counts. It is sent with the end of the reply, also if the
// reply fails.
func (r *Reply) Usage(u *protocol.Usage) { r.usage = cmp.Or(u, r.usage) }

// Complete notes the API's evidence that the reply is complete. StopError means that the server says it failed.
// Events that follow are still read, for a few seconds at most.
func (r *Reply) Complete(stop protocol.StopReason) {
	r.stop = stop
	r.answer.gap = min(r.answer.gap, settleTime)
}

// Completed reports whether Complete was called.
func (r *Reply) Completed() bool { return r.stop != "" }

// Fits reports an error if size more bytes and calls more tool calls would exceed the limits. Decoders that gather a part over
// several events ask before they keep more of it.
func (r *Reply) Fits(size, calls int) error {
	if err := r.meter.Fits(size, calls); err != nil {
		return r.failed(err)
	}
	return nil
}

// Failed is the error of a reply in which the server reports a failure. event is for the error's excerpt.
func (r *Reply) Failed(f Failure, event []byte) error {
	failure := r.answer.classify(0, f)
	failure.Raw = r.answer.raw(event)
	return r.failed(failure)
}

// Malformed is the error of an event that does not have the API's form.
func (r *Reply) Malformed(event []byte, err error) error {
	return r.answer.malformed("an event does not have the expected form", event, err)
}

// send passes a chunk to the reader. It fails if the reply would exceed its limits, or with errReaderLeft.
func (r *Reply) send(c provider.Chunk) error {
	if err := r.meter.Take(&c); err != nil {
		return r.failed(err)
	}
	if !r.yield(c, nil) {
		return errReaderLeft
	}
	return nil
}

// failed passes on the usage of a reply that failed, which is paid for as well, and the evidence. It returns the failure.
func (r *Reply) failed(failure error) error {
	news := provider.Chunk{Usage: r.usage, Evidence: r.evidence()}
	r.usage, r.served = nil, protocol.CallEvidence{}
	if news.Usage != nil || news.Evidence != nil {
		if err := r.send(news); err != nil {
			return err
		}
	}
	return failure
}

// read passes the reply on, including its end.
// The first byte decides whether the answer is an event stream. Only whole lines end a silence, not single bytes.
func (r *Reply) read(ctx context.Context) error {
	lines := newLineReader(r.answer)
	defer lines.release()
	first, err := lines.in.Peek(1)
	if err != nil {
		return r.ended(ctx, err)
	}
	if first[0] == '{' || first[0] == '<' || first[0] == '[' {
		return r.whole(ctx, lines.in)
	}
	r.answer.lines = true
	for {
		line, err := lines.next()
		if err != nil {
			return r.ended(ctx, err)
		}
		data := payload(line)
		r.answer.progress()
		switch {
		case len(data) == 0:
			continue
		case lines.cut && !json.Valid(data): // the end of the answer in the middle of an event
			return r.ended(ctx, io.EOF)
		}
		if err := r.decoder.Event(data, r); errors.Is(err, io.EOF) {
			return r.ended(ctx, io.EOF)
		} else if err != nil {
			return err
		}
	}
}

// whole reads an answer in one piece: from a server that cannot stream, or that rejects with status 200.
func (r *Reply) whole(ctx context.Context, body io.Reader) error {
	data, err := readWhole(body)
	if err != nil {
		return r.answer.broken(ctx, err)
	}
	if data[0] == '<' {
		return r.answer.malformed("the answer is a web page, perhaps of a network that asks you to log in", data, nil)
	}
	d, ok := r.decoder.(WholeDecoder)
	if !ok {
		if failure, found := findFailure(data); found {
			return r.Failed(failure, data)
		}
		return r.answer.malformed("the answer is not an event stream", data, nil)
	}
	if err := d.Whole(data, r); err != nil {
		return err
	}
	if r.stop == "" && !r.output {
		return r.answer.malformed("the answer holds no reply", data, nil)
	}
	return r.ended(ctx, io.EOF)
}

// ended decides what the end of the answer means. Once the reply is known to be complete, it does not matter how the connection
// ended.
func (r *Reply) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return provider.Cancelled(ctx)
	}
	switch {
	case r.stop == "" && errors.Is(err, io.EOF):
		return r.failed(r.answer.incomplete())
	case r.stop == "":
		return r.failed(r.answer.broken(ctx, err))
	case r.stop == protocol.StopError:
		return r.failed(r.answer.classify(0, Failure{Message: "the model server stopped with an error"}))
	}
	if err := r.decoder.Finish(r); err != nil {
		return err
	}
	left := r.send(provider.Chunk{Usage: r.usage, Evidence: r.evidence(), Stop: r.reason()})
	r.answer.drain()
	return left
}

// reason corrects the server's stop reason by what was seen.
// Some servers report stop for a reply with calls, or the output limit for a prompt that fills the context window.
func (r *Reply) reason() protocol.StopReason {
	switch {
	case r.stop == protocol.StopEnd && r.called:
		return protocol.StopToolUse
	case r.stop == protocol.StopToolUse && !r.called:
		return protocol.StopEnd
	case r.stop == protocol.StopOutputLimit && r.full():
		return protocol.StopContextLimit
	}
	return r.stop
}

// full reports whether the prompt left no room for an answer.
// A prompt of 95 % of the context window counts as full.
func (r *Reply) full() bool {
	if r.output || r.usage == nil || r.usage.Output > 0 || r.model.ContextWindow <= 0 {
		return false
	}
	prompt := r.usage.Input + r.usage.CacheRead + r.usage.CacheWrite
	return float64(prompt) >= 0.95*float64(r.model.ContextWindow)
}
