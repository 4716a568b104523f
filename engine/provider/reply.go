package provider

import "lashd/rpc/protocol"

// Reply is a finished model call: what its chunks add up to.
type Reply struct {
	Parts    []protocol.Part          `json:"parts"`              // in the order in which the model wrote them
	Stop     protocol.StopReason      `json:"stop"`               // "" if the reply is not complete
	Usage    *protocol.Usage          `json:"usage,omitempty"`    // as last reported; nil: the server reported none
	Options  []protocol.OptionReceipt `json:"options,omitempty"`  // fates of the options that the request asked for
	Attempts []protocol.CallAttempt   `json:"attempts,omitempty"` // of all attempts, also those before a Reset
	Evidence *protocol.CallEvidence   `json:"evidence,omitempty"` // as last reported
	Streamed bool                     `json:"streamed,omitempty"` // some text was shown
}

// Message is the reply as an assistant message.
func (r *Reply) Message() protocol.Message {
	return protocol.Message{Role: protocol.RoleAssistant, Parts: r.Parts}
}

// Collector adds chunks up. Neighbouring deltas of a kind become one part, so the order of reasoning, prose and calls
// is kept. The zero value is ready.
type Collector struct {
	reply Reply
	kind  protocol.PartKind // of the part that deltas are added to
	text  []byte            // of that part, reused for the next one
}

// Add takes one more chunk in.
// Replay state is attached to the last part; without a part it is dropped.
func (c *Collector) Add(chunk *Chunk) {
	if chunk.Reset {
		c.reply = Reply{Attempts: c.reply.Attempts}
		c.text = c.text[:0]
	}
	c.grow(protocol.PartReasoning, chunk.Reasoning)
	c.grow(protocol.PartCommentary, chunk.Commentary)
	c.grow(protocol.PartProse, chunk.Text)
	c.grow(protocol.PartCode, chunk.Code)
	if chunk.Part != nil {
		c.closePart()
		c.reply.Parts = append(c.reply.Parts, *chunk.Part)
	}
	if chunk.Replay != nil {
		c.closePart()
		if n := len(c.reply.Parts); n > 0 {
			c.reply.Parts[n-1].Replay = chunk.Replay
			c.reply.Parts[n-1].Route = chunk.Route
		}
	}
	c.note(chunk)
}

// note keeps the news of a chunk about the call. The last report of each counts.
func (c *Collector) note(chunk *Chunk) {
	if chunk.Usage != nil {
		c.reply.Usage = chunk.Usage
	}
	if chunk.Evidence != nil {
		c.reply.Evidence = chunk.Evidence
	}
	if chunk.Options != nil {
		c.reply.Options = chunk.Options
	}
	if chunk.Attempt != nil {
		c.reply.Attempts = append(c.reply.Attempts, *chunk.Attempt)
	}
	if chunk.Stop != "" {
		c.reply.Stop = chunk.Stop
	}
}

// Reply is what was added so far.
// It ends the part that is being written, so deltas that follow begin a new one.
func (c *Collector) Reply() Reply {
	c.closePart()
	return c.reply
}

// grow adds a delta to the open part, or to a new one if its kind is another.
func (c *Collector) grow(kind protocol.PartKind, delta string) {
	if delta == "" {
		return
	}
	if kind != c.kind {
		c.closePart()
	}
	c.kind = kind
	c.text = append(c.text, delta...)
	c.reply.Streamed = true
}

// closePart appends the open part to the reply if it has text.
func (c *Collector) closePart() {
	if len(c.text) > 0 {
		c.reply.Parts = append(c.reply.Parts, protocol.Part{Kind: c.kind, Text: string(c.text)})
	}
	c.text = c.text[:0]
}
