package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"

	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// event is one event of the stream, as far as lashd reads it.
// Type decides which other fields are set. Events of unknown types are ignored.
type event struct {
	Type     string            `json:"type"`          // such as "response.output_text.delta"
	Output   int               `json:"output_index"`  // index of the item that the event belongs to
	Delta    string            `json:"delta"`         // of text, a refusal or reasoning
	Summary  endpoint.Count    `json:"summary_index"` // index of the summary's part, in deltas of reasoning summaries
	Item     json.RawMessage   `json:"item"`          // of output_item.added, whose item may be incomplete, and of output_item.done
	Response response          `json:"response"`      // of response.* events that carry the response object
	Error    *endpoint.Failure `json:"error"`         // of the event "error", or of an event without a type
}

// response is the object that the last event carries.
// The fields that only the end of a response has are zero in earlier events.
type response struct {
	ID         endpoint.Fact                `json:"id"`           // of the reply, kept as evidence
	Model      endpoint.Fact                `json:"model"`        // id of the model that answers
	Tier       endpoint.Fact                `json:"service_tier"` // service tier that served the call
	Usage      endpoint.Optional[wireUsage] `json:"usage"`        // none until the response ends
	Error      *endpoint.Failure            `json:"error"`        // of response.failed
	Incomplete struct {
		Reason string `json:"reason"` // of response.incomplete, such as "max_output_tokens"; "" for a complete response
	} `json:"incomplete_details"`
}

// item is one output item.
// The server sends it once when it begins and once when it is done.
type item struct {
	Type      string        `json:"type"`              // "message", "reasoning" or "function_call"; others are left out
	Phase     endpoint.Fact `json:"phase"`             // "commentary" marks a message that is not the answer
	CallID    string        `json:"call_id"`           // id that the call's result refers to, unlike the id of the item
	Name      string        `json:"name"`              // of the called function
	Arguments string        `json:"arguments"`         // JSON of the arguments, as a string
	Encrypted endpoint.Fact `json:"encrypted_content"` // reasoning that only the server can read
	Content   []struct {    // of a message: texts and refusals
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary []struct { // of a reasoning item, for people to read
		Text string `json:"text"`
	} `json:"summary"`
}

// decoder turns the events of one answer into a reply.
// It belongs to one call and to the goroutine that reads the answer.
type decoder struct {
	route string            // of the call; replay state is valid only there
	items map[int]*progress // open items, by their index
	last  *progress         // of the item whose text or reasoning was passed on last; nil after another part

	refused bool // the model declines: the reply counts as filtered, not as an answer
}

// progress records how much of an unfinished output item was passed on to the reply.
type progress struct {
	commentary bool           // deltas of the item go to the reader as commentary
	streamed   bool           // a delta came, so the finished item's text is not passed on again
	summary    endpoint.Count // index of the reasoning summary's part that is being written
}

// Event implements endpoint.Decoder.
// The evidence of a complete reply is response.completed or response.incomplete.
func (d *decoder) Event(data []byte, r *endpoint.Reply) error {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		return io.EOF
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil && !(endpoint.Mistyped(err) && e.foreign()) {
		return r.Malformed(data, err)
	}
	r.Served(e.Response.Model, e.Response.Tier, e.Response.ID)
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		d.refused = d.refused || e.Type == "response.refusal.delta"
		return d.text(&e, r)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return d.reasoning(&e, r)
	case "response.output_item.added", "response.output_item.done":
		return d.item(&e, data, r)
	case "response.completed", "response.incomplete":
		r.Usage(e.Response.Usage.Value.buckets())
		stop := stopReason(&e.Response)
		if d.refused && stop == protocol.StopEnd {
			stop = protocol.StopContentFilter
		}
		r.Complete(stop)
		return io.EOF
	case "response.failed", "response.cancelled":
		r.Usage(e.Response.Usage.Value.buckets())
		return r.Failed(*cmp.Or(e.Response.Error, &endpoint.Failure{Message: "the response has failed"}), data)
	case "error":
		return r.Failed(*cmp.Or(e.Error, flat(data)), data)
	}
	if e.Type == "" && e.Error != nil {
		return r.Failed(*e.Error, data)
	}
	return nil
}

// foreign reports whether lashd does not read events of this type. Their members may have any type.
func (e *event) foreign() bool {
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta",
		"response.output_item.added", "response.output_item.done", "response.completed", "response.incomplete", "response.failed",
		"response.cancelled", "error", "":
		return false
	}
	return true
}

// flat reads an error event that has the members of the error itself. Some servers send a number as its code.
func flat(data []byte) *endpoint.Failure {
	var f endpoint.Failure
	if err := json.Unmarshal(data, &f); err != nil {
		f.Message = string(data)
	}
	f.Type = "" // is that of the event
	return &f
}

// open returns the progress of an item. Too many open items are an error.
// Items are open from their first event to output_item.done.
func (d *decoder) open(index int, r *endpoint.Reply) (*progress, error) {
	if d.items == nil {
		d.items = map[int]*progress{}
	}
	if d.items[index] == nil {
		d.items[index] = &progress{}
	}
	return d.items[index], r.Fits(0, len(d.items))
}

// text passes on a delta of a message. Whether it is commentary is known from output_item.added.
func (d *decoder) text(e *event, r *endpoint.Reply) error {
	p, err := d.open(e.Output, r)
	if err != nil {
		return err
	}
	p.streamed = p.streamed || e.Delta != ""
	d.last = p
	if p.commentary {
		return r.Commentary(e.Delta)
	}
	return r.Text(e.Delta)
}

// reasoning passes on a delta of reasoning. A blank line separates the parts of a summary.
func (d *decoder) reasoning(e *event, r *endpoint.Reply) error {
	p, err := d.open(e.Output, r)
	if err != nil {
		return err
	}
	d.last = p
	text := e.Delta
	if p.streamed && e.Summary != p.summary {
		text = "\n\n" + text
	}
	p.streamed, p.summary = p.streamed || text != "", e.Summary
	return r.Reasoning(text)
}

// item takes the beginning and the end of an item. Only the end has all of it.
// Calls are passed on only then: lashd does not read the deltas of arguments.
func (d *decoder) item(e *event, data []byte, r *endpoint.Reply) error {
	var i item
	if err := json.Unmarshal(e.Item, &i); err != nil && !(endpoint.Mistyped(err) && i.foreign()) {
		return r.Malformed(data, err)
	}
	p, err := d.open(e.Output, r)
	if err != nil {
		return err
	}
	p.commentary = i.Phase == "commentary"
	if e.Type == "response.output_item.added" {
		return nil
	}
	delete(d.items, e.Output)
	switch i.Type {
	case "function_call":
		d.last = nil
		return r.Call(i.CallID, i.Name, []byte(i.Arguments))
	case "reasoning":
		return d.thought(e.Item, &i, p, r)
	case "message":
		return d.message(&i, p, r)
	}
	return nil
}

// foreign reports whether lashd does not read items of this type. Their members may have any type.
func (i *item) foreign() bool {
	return i.Type != "message" && i.Type != "reasoning" && i.Type != "function_call" && i.Type != ""
}

// thought keeps a finished reasoning item, so that later requests can send it back. It drops an item without encrypted content,
// because the server could not use it.
// If no delta came, the summary of the item is passed on first. The state is attached to that text if it is the last part, and is
// otherwise a part without text.
func (d *decoder) thought(native json.RawMessage, i *item, p *progress, r *endpoint.Reply) error {
	if !p.streamed {
		for n, part := range i.Summary {
			if n > 0 {
				part.Text = "\n\n" + part.Text
			}
			if err := r.Reasoning(part.Text); err != nil {
				return err
			}
			if part.Text != "" {
				p.streamed, d.last = true, p
			}
		}
	}
	switch {
	case i.Encrypted == "":
		return nil
	case p.streamed && d.last == p:
		return r.Replay(native, d.route)
	}
	d.last = nil
	return r.Hidden(protocol.PartReasoning, native, d.route)
}

// message passes on the text of a server that sends no deltas.
// With deltas, the text was passed on already.
func (d *decoder) message(i *item, p *progress, r *endpoint.Reply) error {
	if p.streamed {
		return nil
	}
	for _, part := range i.Content {
		say := r.Text
		if p.commentary {
			say = r.Commentary
		}
		d.refused = d.refused || part.Refusal != ""
		if err := say(part.Text + part.Refusal); err != nil {
			return err
		}
	}
	return nil
}

// Finish implements endpoint.Decoder. An item that did not end is not used: its arguments may not be whole.
func (d *decoder) Finish(*endpoint.Reply) error { return nil }

// stopReason says why a response ended.
// StopEnd covers a response that ends with calls: Reply.reason then makes it StopToolUse. Unknown reasons are StopUnknown.
func stopReason(r *response) protocol.StopReason {
	switch r.Incomplete.Reason {
	case "":
		return protocol.StopEnd
	case "max_output_tokens":
		return protocol.StopOutputLimit
	case "content_filter":
		return protocol.StopContentFilter
	}
	return protocol.StopUnknown
}

// wireUsage has the token counts of a response.
// Input and Output include the counts in their details, which may be absent.
type wireUsage struct {
	Input  endpoint.Count `json:"input_tokens"`  // includes Cached and Written
	Output endpoint.Count `json:"output_tokens"` // includes Reasoning
	In     struct {
		Cached  endpoint.Count `json:"cached_tokens"`      // read from the cache
		Written endpoint.Count `json:"cache_write_tokens"` // written to the cache; only some servers report it
	} `json:"input_tokens_details"`
	Out struct {
		Reasoning endpoint.Count `json:"reasoning_tokens"` // tokens of reasoning, hidden or not
	} `json:"output_tokens_details"`
}

// buckets maps the counts to the five buckets of protocol.Usage; nil stays nil.
// Details that exceed their total are cut to it, so no bucket is negative.
func (u *wireUsage) buckets() *protocol.Usage {
	if u == nil {
		return nil
	}
	read := min(u.In.Cached, u.Input)
	written := min(u.In.Written, u.Input-read)
	return &protocol.Usage{
		Input: int64(u.Input - read - written), Output: int64(u.Output), CacheRead: int64(read), CacheWrite: int64(written),
		Reasoning: int64(min(u.Out.Reasoning, u.Output)),
	}
}
