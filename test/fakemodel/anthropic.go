package fakemodel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// anthropicAPI is Anthropic Messages.
type anthropicAPI struct{}

func (anthropicAPI) list() string { return "messages" }

func (anthropicAPI) settings(chat *Chat, _ string, rest []byte) error {
	var r struct {
		Model     string `json:"model"`
		MaxTokens int    `json:"max_tokens"`
		Stream    bool   `json:"stream"`
		Tools     []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Input       json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(rest, &r); err != nil {
		return err
	}
	chat.Model, chat.Stream = r.Model, r.Stream
	for _, t := range r.Tools {
		chat.Tools = append(chat.Tools, newTool(t.Name, t.Description, t.Input))
	}
	if r.MaxTokens <= 0 {
		return errors.New("max_tokens is required")
	}
	return nil
}

// anthropicBlock is one content block of a request.
type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"` // of redacted thinking
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	CallID    string          `json:"tool_use_id"`
	Content   content         `json:"content"`
	Source    anthropicSource `json:"source"`
}

// anthropicSource is the source of an image or a document.
type anthropicSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
	URL       string `json:"url"`
}

// messages splits a user's message into its tool results and the rest.
func (anthropicAPI) messages(element []byte) ([]Message, error) {
	var m struct {
		Role    string           `json:"role"`
		Content []anthropicBlock `json:"content"`
	}
	if err := json.Unmarshal(element, &m); err != nil {
		return nil, err
	}
	var list []Message
	rest := Message{Role: m.Role}
	used := false
	for _, b := range m.Content {
		if b.Type == "tool_result" {
			list = append(list, Message{Role: "tool", ToolCallID: b.CallID, Content: Text(b.Content.text), Images: b.Content.images})
			continue
		}
		used = true
		switch b.Type {
		case "text":
			rest.Content += Text(b.Text)
		case "image", "document":
			rest.Images = append(rest.Images, Image{Type: b.Source.MediaType, Data: b.Source.Data, URL: b.Source.URL})
		case "thinking":
			rest.Reasoning += b.Thinking
			rest.Signatures = append(rest.Signatures, b.Signature)
		case "tool_use":
			rest.ToolCalls = append(rest.ToolCalls, newSentCall(b.ID, b.Name, string(b.Input)))
		default:
			return nil, fmt.Errorf("unknown content block %q", b.Type)
		}
	}
	if used || len(list) == 0 {
		list = append(list, rest)
	}
	return list, nil
}

func (anthropicAPI) authenticate(h http.Header) (string, error) {
	if h.Get("Anthropic-Version") != "2023-06-01" {
		return "", errors.New("the header anthropic-version must be 2023-06-01")
	}
	return h.Get("X-Api-Key"), nil
}

// anthropicError is the body of a rejection and of an error event.
type anthropicError struct {
	Type      string        `json:"type"`
	Error     anthropicFail `json:"error"`
	RequestID *string       `json:"request_id"`
}

type anthropicFail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (anthropicAPI) failure(status int, message string) any {
	kinds := map[int]string{401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
	return anthropicError{Type: "error", Error: anthropicFail{cmp.Or(kinds[status], "invalid_request_error"), message}}
}

func (anthropicAPI) stream(r *reply) wire { return &anthropicStream{reply: r} }

// anthropicStream writes content blocks one after the other.
type anthropicStream struct {
	*reply
	index     int    // of the open block
	open      string // its type; "" for none
	signature string // of an open thinking block
}

// event appends an event with these members beside its type.
func (w *anthropicStream) event(kind, members string) {
	w.buf = append(w.buf, "event: "+kind+"\ndata: "+`{"type":"`+kind+`"`+members+"}\n\n"...)
}

func (w *anthropicStream) begin() {
	u := w.usage(w.step)
	w.event("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,`+
		`"stop_details":null,"container":null,"diagnostics":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,`+
		`"cache_creation":null,"output_tokens":1,"output_tokens_details":null,"server_tool_use":null,"service_tier":null,"inference_geo":null,"speed":null}}`,
		w.number, quote(w.tail.Model), u.Prompt-u.PromptDetails.Cached, u.PromptDetails.Cached))
	w.event("ping", "")
}

// block makes sure that a block of this type is open.
func (w *anthropicStream) block(kind, start string) {
	if w.open == kind {
		return
	}
	w.shut()
	w.open = kind
	w.event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, w.index, start))
}

// shut ends the open block.
func (w *anthropicStream) shut() {
	if w.open == "" {
		return
	}
	if w.open == "thinking" {
		w.delta("signature_delta", "signature", cmp.Or(w.signature, w.sign(w.index)))
	}
	w.event("content_block_stop", fmt.Sprintf(`,"index":%d`, w.index))
	w.open, w.signature = "", ""
	w.index++
}

func (w *anthropicStream) delta(kind, member, text string) {
	w.event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":%q,%q:%s}`, w.index, kind, member, quote(text)))
}

func (w *anthropicStream) text(s string) {
	w.block("text", `{"type":"text","text":"","citations":null}`)
	w.delta("text_delta", "text", s)
}

func (w *anthropicStream) prose(i, size int) {
	w.block("text", `{"type":"text","text":"","citations":null}`)
	w.buf = append(w.buf, "event: content_block_delta\ndata: "+`{"type":"content_block_delta","index":`...)
	w.buf = append(append(w.buf, '0'+byte(w.index)), `,"delta":{"type":"text_delta","text":"`...)
	w.buf = append(appendProse(w.buf, i, size), `"}}`+"\n\n"...)
}

func (w *anthropicStream) reasoning(s, signature string) {
	w.block("thinking", `{"type":"thinking","thinking":"","signature":""}`)
	w.delta("thinking_delta", "thinking", s)
	w.signature = signature
	w.issue(signature)
}

func (w *anthropicStream) calls(calls []Call) {
	for _, c := range calls {
		w.shut()
		w.block("tool_use", fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{},"caller":{"type":"direct"}}`, quote(c.ID), quote(c.Name)))
		for _, piece := range append([]string{""}, c.pieces()...) {
			w.delta("input_json_delta", "partial_json", piece)
		}
	}
	w.shut()
}

func (w *anthropicStream) fault(reason string) {
	w.event("error", `,"request_id":null,"error":`+string(mustMarshal(anthropicFail{"overloaded_error", reason})))
}

func (w *anthropicStream) end(st Step) {
	w.shut()
	reasons := map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
	reason := w.finish(st)
	u := w.usage(st)
	w.event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null,"stop_details":null,"container":null},"usage":{"input_tokens":%d,`+
		`"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d},"server_tool_use":null}`,
		cmp.Or(reasons[reason], reason), u.Prompt-u.PromptDetails.Cached, u.PromptDetails.Cached, u.Completion, u.CompletionDetails.Reasoning))
	w.event("message_stop", "")
}
