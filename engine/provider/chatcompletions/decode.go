package chatcompletions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// decoder turns the chunks of one answer into a reply.
// It belongs to one call and to the goroutine that reads the answer.
type decoder struct {
	route  string // of the call; replay state is valid only there
	replay bool   // keep reasoning for the server

	template template // shortcut for chunks of text
	calls    calls    // that have not been passed on
	thought  []byte   // reasoning that is not yet sent as replay state
	refused  bool     // the model declines: the reply counts as filtered, not as an answer
}

// Event implements endpoint.Decoder.
// [DONE] ends the stream, but only a finish_reason is evidence of a complete reply.
func (d *decoder) Event(data []byte, r *endpoint.Reply) error {
	if text, ok := d.template.cut(data); ok {
		return d.text(r, string(text), d.template.reasoning)
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		return io.EOF
	}
	return d.Whole(data, r)
}

// Whole implements endpoint.WholeDecoder: an answer in one piece has the form of a chunk.
// Usage is noted before an error, because a reply that fails is paid for as well.
func (d *decoder) Whole(data []byte, r *endpoint.Reply) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return r.Malformed(data, err)
	}
	d.template.learn(data, &c)
	r.Served(c.Model, c.Tier, c.ID)
	if c.Usage.Value != nil {
		r.Usage(c.Usage.Value.buckets())
	}
	if c.Error != nil {
		return r.Failed(*c.Error, data)
	}
	for i := range c.Choices {
		if c.Choices[i].Index != 0 {
			continue
		}
		if err := d.choice(r, &c.Choices[i]); err != nil {
			return err
		}
	}
	return nil
}

// choice passes on what a chunk adds to the reply.
// In one chunk, reasoning comes before text, and text before calls.
func (d *decoder) choice(r *endpoint.Reply, c *choice) error {
	delta := &c.Delta
	if c.Message != nil {
		delta = c.Message
	}
	if err := d.text(r, string(delta.ReasoningContent), true); err != nil {
		return err
	}
	if delta.ReasoningContent == "" {
		if err := d.text(r, string(delta.Reasoning), true); err != nil {
			return err
		}
	}
	if err := d.text(r, delta.Content+string(delta.Refusal), false); err != nil {
		return err
	}
	if len(delta.Calls) > 0 {
		if err := d.endThought(r); err != nil {
			return err
		}
	}
	for i := range delta.Calls {
		d.calls.add(&delta.Calls[i])
		if err := r.Fits(d.calls.size, len(d.calls.open)); err != nil {
			return err
		}
	}
	d.refused = d.refused || delta.Refusal != ""
	switch {
	case c.Finish == "stop" && d.refused:
		r.Complete(protocol.StopContentFilter)
	case c.Finish != "":
		r.Complete(stopReason(c.Finish))
	}
	return nil
}

// text passes on a delta. Calls before it are complete, unless their arguments are still growing.
// The replay state of reasoning goes out before the text after it.
func (d *decoder) text(r *endpoint.Reply, text string, reasoning bool) error {
	if text == "" {
		return nil
	}
	if d.calls.whole() {
		if err := d.flush(r); err != nil {
			return err
		}
	}
	if reasoning {
		if d.replay {
			d.thought = append(d.thought, text...)
		}
		return r.Reasoning(text)
	}
	if err := d.endThought(r); err != nil {
		return err
	}
	return r.Text(text)
}

// endThought passes on the replay state of the reasoning before.
// Servers have no state of their own for reasoning, so the text is the state. Without replay, thought is empty.
func (d *decoder) endThought(r *endpoint.Reply) error {
	if len(d.thought) == 0 {
		return nil
	}
	data, err := json.Marshal(replay{Reasoning: string(d.thought)})
	if err != nil {
		return fmt.Errorf("model call: keep reasoning: %w", err)
	}
	d.thought = nil
	return r.Replay(data, d.route)
}

// Finish implements endpoint.Decoder.
// Calls are complete here, even if their arguments are not JSON: Reply.Call makes those a string.
func (d *decoder) Finish(r *endpoint.Reply) error {
	if err := d.endThought(r); err != nil {
		return err
	}
	return d.flush(r)
}

// flush passes on the calls that are complete.
func (d *decoder) flush(r *endpoint.Reply) error {
	for _, call := range d.calls.take() {
		if err := r.Call(call.id, call.name, call.args); err != nil {
			return err
		}
	}
	return nil
}

// stopReason translates a finish_reason.
// Some servers report their own words; model_length is one of them. A word that lashd does not know is StopUnknown.
func stopReason(finish string) protocol.StopReason {
	switch finish {
	case "stop":
		return protocol.StopEnd
	case "tool_calls", "function_call":
		return protocol.StopToolUse
	case "length":
		return protocol.StopOutputLimit
	case "model_length":
		return protocol.StopContextLimit
	case "content_filter":
		return protocol.StopContentFilter
	case "error":
		return protocol.StopError
	}
	return protocol.StopUnknown
}
