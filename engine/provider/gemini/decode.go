package gemini

import (
	"encoding/json"
	"fmt"

	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// event is one event of the stream, as far as lashd reads it.
// Each event is a whole response object with the parts that are new.
type event struct {
	Candidates []candidate       `json:"candidates"`    // lashd reads only the one with index 0
	Usage      *wireUsage        `json:"usageMetadata"` // totals so far; nil if the event has none
	ID         endpoint.Fact     `json:"responseId"`    // of the reply, kept as evidence
	Model      endpoint.Fact     `json:"modelVersion"`  // version of the model that answers
	Feedback   *feedback         `json:"promptFeedback"`
	Error      *endpoint.Failure `json:"error"` // of a stream that fails
}

// feedback is what the server says about the prompt.
type feedback struct {
	Block string `json:"blockReason"` // why the server refused the prompt; there is no candidate then
}

// candidate is one alternative reply, or the next piece of it.
type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []part `json:"parts"` // in order; deltas of text are parts of their own
	} `json:"content"`
	Finish  string        `json:"finishReason"`  // why the reply ended; "" until then
	Message endpoint.Fact `json:"finishMessage"` // explains Finish for people; often absent
}

// part is a piece of a reply. Parts of other kinds have none of these fields and are left out.
// A text, a thought or a call may be signed. A part may also have only a signature.
type part struct {
	Text      string        `json:"text"`             // a delta of the reply, or of a thought
	Thought   bool          `json:"thought"`          // Text is a summary of reasoning, not of the reply
	Signature endpoint.Fact `json:"thoughtSignature"` // base64; goes back with the part in later calls
	Call      *struct {
		ID   endpoint.Fact   `json:"id"`   // may be absent; the engine then gives the call an id
		Name string          `json:"name"` // of the called function
		Args json.RawMessage `json:"args"` // whole: arguments are not streamed; kept as bytes so that large integers are exact
	} `json:"functionCall"`
}

// decoder turns the events of one answer into a reply.
// It belongs to one call and to the goroutine that reads the answer.
type decoder struct {
	route string // of the call; signatures are valid only there
	open  bool   // the last part was text or reasoning without a signature
}

// Event implements endpoint.Decoder.
// A finishReason, or a blockReason without candidates, is the evidence of a complete reply. The API has no last event, so the
// answer is read to its end.
func (d *decoder) Event(data []byte, r *endpoint.Reply) error {
	e, err := decode(data)
	if err != nil {
		return r.Malformed(data, err)
	}
	r.Served(e.Model, "", e.ID)
	if e.Usage != nil {
		r.Usage(e.Usage.buckets())
	}
	if e.Error != nil {
		return r.Failed(*e.Error, data)
	}
	for i := range e.Candidates {
		if e.Candidates[i].Index != 0 {
			continue
		}
		if err := d.candidate(&e.Candidates[i], data, r); err != nil {
			return err
		}
	}
	if f := e.Feedback; f != nil && f.Block != "" && len(e.Candidates) == 0 {
		r.Complete(protocol.StopContentFilter)
	}
	return nil
}

// decode decodes an event. A reply can do without the usage and the feedback, so these may have any type. As endpoint.Optional slows each
// event down, only an event that does not fit is read that way.
func decode(data []byte) (*event, error) {
	var e event
	err := json.Unmarshal(data, &e)
	if !endpoint.Mistyped(err) {
		return &e, err
	}
	var odd struct {
		event
		Usage    endpoint.Optional[wireUsage] `json:"usageMetadata"`  // hides that of event
		Feedback endpoint.Optional[feedback]  `json:"promptFeedback"` // as above
	}
	err = json.Unmarshal(data, &odd)
	odd.event.Usage, odd.event.Feedback = odd.Usage.Value, odd.Feedback.Value
	return &odd.event, err
}

// candidate passes on the parts and then the end of the reply. A call that the server could not parse fails the reply with an error that may be retried.
func (d *decoder) candidate(c *candidate, data []byte, r *endpoint.Reply) error {
	for i := range c.Content.Parts {
		if err := d.part(&c.Content.Parts[i], r); err != nil {
			return err
		}
	}
	switch stop := stopReason(c.Finish); stop {
	case "":
	case protocol.StopError:
		return r.Failed(*endpoint.NewFailure(c.Finish, fmt.Sprintf("the model's tool call could not be read (%s): %s", c.Finish, c.Message)), data)
	default:
		r.Complete(stop)
	}
	return nil
}

// part passes on one part with its signature.
// The signature is attached to the newest text or reasoning if that has none yet, and is otherwise a part without text.
func (d *decoder) part(p *part, r *endpoint.Reply) error {
	var replay json.RawMessage
	if p.Signature != "" {
		var err error
		if replay, err = json.Marshal(signature{string(p.Signature)}); err != nil {
			return err
		}
	}
	switch {
	case p.Call != nil:
		d.open = false
		route := d.route // of the signature; "" without one
		if replay == nil {
			route = ""
		}
		return r.CallWith(string(p.Call.ID), p.Call.Name, p.Call.Args, replay, route)
	case p.Thought:
		if err := r.Reasoning(p.Text); err != nil {
			return err
		}
	default:
		if err := r.Text(p.Text); err != nil {
			return err
		}
	}
	d.open = d.open || p.Text != ""
	if replay == nil {
		return nil
	}
	if !d.open {
		return r.Hidden(protocol.PartReasoning, replay, d.route)
	}
	d.open = false
	return r.Replay(replay, d.route)
}

// Finish implements endpoint.Decoder.
// Nothing is left to pass on: calls arrive whole.
func (d *decoder) Finish(*endpoint.Reply) error { return nil }

// stopReason translates a finishReason; "" for none.
// Unspecified reasons and CONTINUATION do not end a reply. StopEnd covers replies with calls: Reply.reason makes it StopToolUse.
func stopReason(finish string) protocol.StopReason {
	switch finish {
	case "", "FINISH_REASON_UNSPECIFIED", "CONTINUATION":
		return ""
	case "STOP":
		return protocol.StopEnd
	case "MAX_TOKENS":
		return protocol.StopOutputLimit
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "NO_IMAGE":
		return protocol.StopContentFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return protocol.StopError
	}
	return protocol.StopUnknown
}

// wireUsage has the token counts of an answer. Each event reports all so far.
// Missing counts are 0.
type wireUsage struct {
	Prompt     endpoint.Count `json:"promptTokenCount"`        // includes Cached but not ToolPrompt
	ToolPrompt endpoint.Count `json:"toolUsePromptTokenCount"` // prompt tokens from tools that run on the server
	Cached     endpoint.Count `json:"cachedContentTokenCount"` // read from a cache
	Candidates endpoint.Count `json:"candidatesTokenCount"`    // of the reply, without Thoughts
	Thoughts   endpoint.Count `json:"thoughtsTokenCount"`      // of reasoning
}

// buckets maps the counts to the five buckets of protocol.Usage.
// The API reports no writes to the cache.
func (u *wireUsage) buckets() *protocol.Usage {
	cached := min(u.Cached, u.Prompt)
	return &protocol.Usage{
		Input: int64(u.Prompt - cached + u.ToolPrompt), Output: int64(u.Candidates + u.Thoughts), CacheRead: int64(cached),
		Reasoning: int64(u.Thoughts),
	}
}
