package gemini

import (
	"encoding/json"
	"fmt"

	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// event is one event of the stream, as far as lashd reads it.
type event struct {
	Candidates []candidate   `json:"candidates"`
	Usage      *wireUsage    `json:"usageMetadata"`
	ID         endpoint.Fact `json:"responseId"`
	Model      endpoint.Fact `json:"modelVersion"`
	Feedback   struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Error *endpoint.Failure `json:"error"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []part `json:"parts"`
	} `json:"content"`
	Finish  string `json:"finishReason"`
	Message string `json:"finishMessage"`
}

// part is a piece of a reply. Parts of other kinds have none of these fields and are left out.
type part struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// decoder turns the events of one answer into a reply.
type decoder struct {
	route string
	open  bool // the last part was text or reasoning without a signature
}

// Event implements endpoint.Decoder.
func (d *decoder) Event(data []byte, r *endpoint.Reply) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
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
	if e.Feedback.Block != "" && len(e.Candidates) == 0 {
		r.Complete(protocol.StopContentFilter)
	}
	return nil
}

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
func (d *decoder) part(p *part, r *endpoint.Reply) error {
	var replay json.RawMessage
	if p.Signature != "" {
		var err error
		if replay, err = json.Marshal(signature{p.Signature}); err != nil {
			return err
		}
	}
	switch {
	case p.Call != nil:
		d.open = false
		route := d.route
		if replay == nil {
			route = ""
		}
		return r.CallWith(p.Call.ID, p.Call.Name, p.Call.Args, replay, route)
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
func (d *decoder) Finish(*endpoint.Reply) error { return nil }

// stopReason translates a finishReason; "" for none.
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
type wireUsage struct {
	Prompt     endpoint.Count `json:"promptTokenCount"`
	ToolPrompt endpoint.Count `json:"toolUsePromptTokenCount"`
	Cached     endpoint.Count `json:"cachedContentTokenCount"`
	Candidates endpoint.Count `json:"candidatesTokenCount"`
	Thoughts   endpoint.Count `json:"thoughtsTokenCount"`
}

// buckets maps the counts to the five buckets of protocol.Usage.
func (u *wireUsage) buckets() *protocol.Usage {
	cached := min(u.Cached, u.Prompt)
	return &protocol.Usage{
		Input: int64(u.Prompt - cached + u.ToolPrompt), Output: int64(u.Candidates + u.Thoughts), CacheRead: int64(cached),
		Reasoning: int64(u.Thoughts),
	}
}
