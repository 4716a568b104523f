package anthropic

import (
	"cmp"
	"encoding/json"
	"io"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// event is one event of the stream, as far as lashd reads it.
// Type decides which other fields are set. Pings and events of unknown types are ignored.
type event struct {
	Type    string            `json:"type"`          // such as "content_block_delta"
	Index   int               `json:"index"`         // of the block, in the events content_block_*
	Message message           `json:"message"`       // of message_start
	Block   json.RawMessage   `json:"content_block"` // of content_block_start
	Delta   delta             `json:"delta"`         // of content_block_delta and message_delta
	Usage   optionalUsage     `json:"usage"`         // of message_delta
	Error   *endpoint.Failure `json:"error"`         // of the event "error"
}

// message is the message object of message_start, which has the first token counts.
type message struct {
	ID    endpoint.Fact `json:"id"`    // of the reply, kept as evidence
	Model endpoint.Fact `json:"model"` // id of the model that answers
	Usage optionalUsage `json:"usage"` // message_delta replaces these counts
}

// delta is what an event adds to a block, or the end of the message.
type delta struct {
	Type      string        `json:"type"`         // of a delta to a block; empty in message_delta
	Text      string        `json:"text"`         // of text_delta
	Thinking  string        `json:"thinking"`     // of thinking_delta
	Signature endpoint.Fact `json:"signature"`    // of signature_delta, which comes before the end of the block
	Input     string        `json:"partial_json"` // of input_json_delta: the next bytes of the arguments
	Stop      string        `json:"stop_reason"`  // of message_delta: why the model stopped
}

// block is a content block that is still being written.
// content_block_start has its first members, content_block_delta adds to them, and content_block_stop completes it.
type block struct {
	Type      string          `json:"type"`      // "text", "thinking", "redacted_thinking" or "tool_use"; others are left out
	ID        string          `json:"id"`        // of a call
	Name      string          `json:"name"`      // of the called tool
	Text      string          `json:"text"`      // in content_block_start; deltas are not added
	Thinking  string          `json:"thinking"`  // in content_block_start; deltas are added to thought
	Signature string          `json:"signature"` // of the thinking, as far as it came
	Input     json.RawMessage `json:"input"`     // arguments in content_block_start, used if no delta follows

	raw     json.RawMessage // as the server began it
	args    []byte          // of a call, as far as they came
	thought []byte          // Thinking and what came after it
}

// decoder turns the events of one answer into a reply.
// It belongs to one call and to the goroutine that reads the answer.
type decoder struct {
	route  string              // of the call; replay state is valid only there
	blocks map[int]*block      // open ones, by their index
	last   *block              // that the last delta belongs to; nil after a part without deltas
	usage  wireUsage           // newest value of each count
	stop   protocol.StopReason // from message_delta; counts once message_stop arrives
	size   int                 // of the arguments and thinking that is being gathered
}

// Event implements endpoint.Decoder.
// Only message_stop is evidence of a complete reply: a stream that ends without it is an error, even after a stop reason.
func (d *decoder) Event(data []byte, r *endpoint.Reply) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil && !(endpoint.Mistyped(err) && e.foreign()) {
		return r.Malformed(data, err)
	}
	switch e.Type {
	case "message_start":
		r.Served(e.Message.Model, "", e.Message.ID)
		d.count(e.Message.Usage.Value, r)
	case "content_block_start":
		return d.start(&e, data, r)
	case "content_block_delta":
		return d.delta(&e, r)
	case "content_block_stop":
		return d.end(e.Index, r)
	case "message_delta":
		d.count(e.Usage.Value, r)
		d.stop = cmp.Or(stopReason(e.Delta.Stop), d.stop)
	case "message_stop":
		r.Complete(cmp.Or(d.stop, protocol.StopUnknown))
		return io.EOF
	case "error":
		return r.Failed(*cmp.Or(e.Error, &endpoint.Failure{}), data)
	default:
		if e.Type == "" && e.Error != nil {
			return r.Failed(*e.Error, data)
		}
	}
	return nil
}

// foreign reports whether lashd does not read events or deltas of this type. Their members may have any type.
func (e *event) foreign() bool {
	switch e.Type {
	case "message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop", "error", "":
		return false
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta", "thinking_delta", "signature_delta", "input_json_delta", "":
			return false
		}
	}
	return true
}

// start opens a block. Blocks of kinds that lashd does not know are read and left out.
// The whole first event counts towards the limits of the reply, since a redacted block arrives complete in it.
func (d *decoder) start(e *event, data []byte, r *endpoint.Reply) error {
	b := &block{raw: e.Block}
	if err := json.Unmarshal(e.Block, b); err != nil && !(endpoint.Mistyped(err) && b.foreign()) {
		return r.Malformed(data, err)
	}
	if d.blocks == nil {
		d.blocks = map[int]*block{}
	}
	d.blocks[e.Index] = b
	d.size += provider.Cost(string(e.Block))
	if err := r.Fits(d.size, len(d.blocks)); err != nil {
		return err
	}
	switch b.Type {
	case "text":
		d.last = b
		return r.Text(b.Text)
	case "thinking":
		d.last = b
		b.thought = append(b.thought, b.Thinking...)
		return r.Reasoning(b.Thinking)
	}
	return nil
}

// foreign reports whether lashd does not read blocks of this type. Their members may have any type.
func (b *block) foreign() bool {
	switch b.Type {
	case "text", "thinking", "redacted_thinking", "tool_use", "":
		return false
	}
	return true
}

// delta adds to an open block.
// Text and thinking go to the reader at once. Arguments and signatures are kept until the block ends.
// A delta of a block that was not started is ignored.
func (d *decoder) delta(e *event, r *endpoint.Reply) error {
	b := d.blocks[e.Index]
	if b == nil {
		return nil
	}
	switch e.Delta.Type {
	case "text_delta":
		d.last = b
		return r.Text(e.Delta.Text)
	case "thinking_delta":
		d.last = b
		b.thought = append(b.thought, e.Delta.Thinking...)
		d.size += provider.Cost(e.Delta.Thinking)
		if err := r.Reasoning(e.Delta.Thinking); err != nil {
			return err
		}
	case "signature_delta":
		b.Signature += string(e.Delta.Signature)
		d.size += len(e.Delta.Signature)
	case "input_json_delta":
		b.args = append(b.args, e.Delta.Input...)
		d.size += provider.Cost(e.Delta.Input)
	}
	return r.Fits(d.size, len(d.blocks))
}

// end closes a block and passes on what is whole only now.
// After that, size counts only the blocks that are still open; the meter of the reply counts the parts that were passed on.
func (d *decoder) end(index int, r *endpoint.Reply) error {
	b := d.blocks[index]
	if b == nil {
		return nil
	}
	delete(d.blocks, index)
	d.size = 0
	for _, open := range d.blocks {
		d.size += len(open.raw) + len(open.args) + len(open.thought) + len(open.Signature)
	}
	switch b.Type {
	case "tool_use":
		if len(b.args) == 0 {
			b.args = b.Input
		}
		d.last = nil
		return r.Call(b.ID, b.Name, b.args)
	case "thinking":
		return d.thought(b, r)
	case "redacted_thinking":
		d.last = nil
		return r.Hidden(protocol.PartReasoning, b.raw, d.route)
	}
	return nil
}

// thought keeps a thinking block for the next calls, which the server accepts only as it was, with its signature.
// A block without a signature is left out. The state is attached to the thinking text if that is the last part, and is otherwise a part
// without text.
func (d *decoder) thought(b *block, r *endpoint.Reply) error {
	if b.Signature == "" {
		return nil
	}
	native := encoding.Quote([]byte(`{"type":"thinking","thinking":`), string(b.thought))
	native = append(encoding.Quote(append(native, `,"signature":`...), b.Signature), '}')
	if len(b.thought) == 0 || d.last != b {
		return r.Hidden(protocol.PartReasoning, native, d.route)
	}
	return r.Replay(native, d.route)
}

// Finish implements endpoint.Decoder. A block that was not closed is not used: its arguments may not be whole.
func (d *decoder) Finish(*endpoint.Reply) error { return nil }

// stopReason translates a stop_reason, "" for none.
// A reason that lashd does not know, such as pause_turn of tools that run on the server, is StopUnknown.
func stopReason(reason string) protocol.StopReason {
	switch reason {
	case "":
		return ""
	case "end_turn", "stop_sequence":
		return protocol.StopEnd
	case "tool_use":
		return protocol.StopToolUse
	case "max_tokens":
		return protocol.StopOutputLimit
	case "model_context_window_exceeded":
		return protocol.StopContextLimit
	case "refusal":
		return protocol.StopContentFilter
	}
	return protocol.StopUnknown
}

// wireUsage has the token counts of message_start and message_delta. A later count replaces an earlier one.
// A nil count was not in the event and leaves the earlier value as it is.
type wireUsage struct {
	Tier       endpoint.Fact   `json:"service_tier"`                // that served the call
	Input      *endpoint.Count `json:"input_tokens"`                // prompt tokens that the cache neither had nor stored
	Output     *endpoint.Count `json:"output_tokens"`               // includes Thinking
	CacheRead  *endpoint.Count `json:"cache_read_input_tokens"`     // prompt tokens read from the cache
	CacheWrite *endpoint.Count `json:"cache_creation_input_tokens"` // prompt tokens written to the cache
	Details    struct {
		Thinking *endpoint.Count `json:"thinking_tokens"` // part of Output
	} `json:"output_tokens_details"`
}

// optionalUsage is usage that may be absent.
type optionalUsage = endpoint.Optional[wireUsage]

// count takes the counts of an event.
// The reply gets the totals so far, so a stream that fails later still reports its usage.
func (d *decoder) count(u *wireUsage, r *endpoint.Reply) {
	if u == nil {
		return
	}
	r.Served("", u.Tier, "")
	t := &d.usage
	t.Input, t.Output = cmp.Or(u.Input, t.Input), cmp.Or(u.Output, t.Output)
	t.CacheRead, t.CacheWrite = cmp.Or(u.CacheRead, t.CacheRead), cmp.Or(u.CacheWrite, t.CacheWrite)
	t.Details.Thinking = cmp.Or(u.Details.Thinking, t.Details.Thinking)
	tokens := func(c *endpoint.Count) int64 {
		if c == nil {
			return 0
		}
		return int64(*c)
	}
	r.Usage(&protocol.Usage{
		Input: tokens(t.Input), Output: tokens(t.Output), CacheRead: tokens(t.CacheRead), CacheWrite: tokens(t.CacheWrite),
		Reasoning: min(tokens(t.Details.Thinking), tokens(t.Output)),
	})
}
