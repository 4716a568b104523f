package fakemodel

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
)

// chatAPI is OpenAI Chat Completions.
type chatAPI struct{}

func (chatAPI) list() string { return "messages" }

// chatRequest is a request without its messages.
type chatRequest struct {
	Model           string  `json:"model"`
	Tools           []Tool  `json:"tools"`
	Stream          bool    `json:"stream"`
	StreamOptions   Options `json:"stream_options"`
	ReasoningEffort string  `json:"reasoning_effort"`
}

func (chatAPI) settings(chat *Chat, _ string, rest []byte) error {
	var r chatRequest
	err := json.Unmarshal(rest, &r)
	chat.Model, chat.Tools, chat.Stream, chat.StreamOptions, chat.ReasoningEffort = r.Model, r.Tools, r.Stream, r.StreamOptions, r.ReasoningEffort
	return err
}

func (chatAPI) messages(element []byte) ([]Message, error) {
	var m struct {
		Message
		Content content `json:"content"`
	}
	err := json.Unmarshal(element, &m)
	m.Message.Content, m.Message.Images = Text(m.Content.text), m.Content.images
	return []Message{m.Message}, err
}

func (chatAPI) authenticate(h http.Header) (string, error) { return bearer(h), nil }

func (chatAPI) failure(_ int, message string) any {
	return openAIError{openAIFail{Message: message, Type: "fake_error"}}
}

func (chatAPI) stream(r *reply) wire { return &chatStream{reply: r} }

// wireCall is a tool call, or a piece of one.
type wireCall struct {
	Index    *int         `json:"index,omitempty"` // of a piece
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name string `json:"name,omitempty"`
	Args string `json:"arguments"`
}

// delta is the increment of one chunk.
type delta struct {
	Content   string     `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []wireCall `json:"tool_calls,omitempty"`
}

// chatStream writes chat completion chunks.
type chatStream struct {
	*reply
	head  string // of each chunk, up to the delta
	count int    // calls so far
}

func (w *chatStream) begin() {
	w.head = "data: " + w.object("chat.completion.chunk") + `,"choices":[{"index":0,"delta":`
	w.buf = append(append(w.buf, w.head...), `{"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n"...)
}

// object is the common beginning of every reply object.
func (r *reply) object(kind string) string {
	return `{"id":"chatcmpl-` + strconv.Itoa(r.number) + `","object":"` + kind + `","created":1,"model":` + quote(cmp.Or(r.tail.Model, "fake"))
}

func (w *chatStream) text(s string)         { w.chunk(mustMarshal(delta{Content: s}), "null") }
func (w *chatStream) reasoning(s, _ string) { w.chunk(mustMarshal(delta{Reasoning: s}), "null") }

func (w *chatStream) prose(i, size int) {
	w.buf = append(append(w.buf, w.head...), `{"content":"`...)
	w.buf = append(appendProse(w.buf, i, size), `"},"finish_reason":null}]}`+"\n\n"...)
}

// calls alternates the argument pieces of the calls.
func (w *chatStream) calls(calls []Call) {
	first := w.count
	w.count += len(calls)
	pieces := make([][]string, len(calls))
	rounds := 0
	for i, c := range calls {
		w.call(wireCall{Index: new(first + i), ID: c.ID, Type: "function", Function: wireFunction{Name: c.Name}})
		pieces[i] = c.pieces()
		rounds = max(rounds, len(pieces[i]))
	}
	for round := range rounds {
		for i := range calls {
			if round < len(pieces[i]) {
				w.call(wireCall{Index: new(first + i), Function: wireFunction{Args: pieces[i][round]}})
			}
		}
	}
}

func (w *chatStream) call(c wireCall) { w.chunk(mustMarshal(delta{Calls: []wireCall{c}}), "null") }

func (w *chatStream) fault(reason string) {
	w.buf = append(append(append(w.buf, "data: "...), mustMarshal(chatAPI{}.failure(0, reason))...), "\n\n"...)
}

// chunk appends one chunk; the delta and finish are JSON.
func (w *chatStream) chunk(d []byte, finish string) {
	w.buf = append(append(w.buf, w.head...), d...)
	w.buf = append(w.buf, `,"finish_reason":`+finish+"}]}\n\n"...)
}

func (w *chatStream) end(st Step) {
	w.chunk([]byte("{}"), quote(w.finish(st)))
	if w.tail.Usage {
		w.buf = append(w.buf, "data: "+w.object("chat.completion.chunk")+`,"choices":[],"usage":`...)
		w.buf = append(append(w.buf, mustMarshal(w.usage(st))...), "}\n\n"...)
	}
	if st.End == Whole {
		w.buf = append(w.buf, "data: [DONE]\n\n"...)
	}
}
