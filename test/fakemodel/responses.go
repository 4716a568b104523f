package fakemodel

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// responsesAPI is OpenAI Responses.
type responsesAPI struct{}

func (responsesAPI) list() string { return "input" }

func (responsesAPI) settings(chat *Chat, _ string, rest []byte) error {
	var r struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"tools"`
		Reasoning struct {
			Effort string `json:"effort"`
		} `json:"reasoning"`
	}
	err := json.Unmarshal(rest, &r)
	chat.Model, chat.Stream, chat.ReasoningEffort = r.Model, r.Stream, r.Reasoning.Effort
	for _, t := range r.Tools {
		chat.Tools = append(chat.Tools, newTool(t.Name, t.Description, t.Parameters))
	}
	return err
}

// messages decodes one item.
func (responsesAPI) messages(element []byte) ([]Message, error) {
	var i struct {
		Type      string  `json:"type"`
		Role      string  `json:"role"`
		Content   content `json:"content"`
		CallID    string  `json:"call_id"`
		Name      string  `json:"name"`
		Arguments string  `json:"arguments"`
		Output    content `json:"output"`
		Encrypted string  `json:"encrypted_content"`
	}
	if err := json.Unmarshal(element, &i); err != nil {
		return nil, err
	}
	switch i.Type {
	case "message", "":
		return []Message{{Role: i.Role, Content: Text(i.Content.text), Images: i.Content.images}}, nil
	case "function_call":
		return []Message{{Role: "assistant", ToolCalls: []SentCall{newSentCall(i.CallID, i.Name, i.Arguments)}}}, nil
	case "function_call_output":
		return []Message{{Role: "tool", ToolCallID: i.CallID, Content: Text(i.Output.text), Images: i.Output.images}}, nil
	case "reasoning":
		return []Message{{Role: "assistant", Signatures: []string{i.Encrypted}}}, nil
	}
	return nil, fmt.Errorf("unknown item %q", i.Type)
}

func (responsesAPI) authenticate(h http.Header) (string, error) { return bearer(h), nil }

// openAIError is the body of a rejection by either API of OpenAI.
type openAIError struct {
	Error openAIFail `json:"error"`
}

// openAIFail is the error in it. All of its members are always there.
type openAIFail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (responsesAPI) failure(status int, message string) any {
	f := openAIFail{Message: message, Type: "invalid_request_error"}
	if status == http.StatusUnauthorized {
		f.Code = new("invalid_api_key")
	}
	return openAIError{f}
}

func (responsesAPI) stream(r *reply) wire { return &responsesStream{reply: r} }

// responsesStream writes output items one after the other; calls of one part are open together.
type responsesStream struct {
	*reply
	sequence int
	index    int    // of the open item
	open     string // its type; "" for none
	said     []byte // text of the open item
	signed   string // of the open reasoning item
	output   []string
}

// event appends an event with these members beside its type.
func (w *responsesStream) event(kind, members string) {
	w.buf = append(w.buf, "event: response."+kind+"\ndata: "+`{"type":"response.`+kind+`","sequence_number":`+strconv.Itoa(w.sequence)+members+"}\n\n"...)
	w.sequence++
}

// response is the object of the events about the whole reply.
func (w *responsesStream) response(status, rest string) string {
	return fmt.Sprintf(`,"response":{"id":"resp_%d","object":"response","created_at":1,"model":%s,"status":%q,"output":[%s],"error":null,"instructions":null,`+
		`"metadata":{},"parallel_tool_calls":true,"temperature":1,"top_p":1,"tool_choice":"auto","tools":[],"access_programs":null%s}`,
		w.number, quote(w.tail.Model), status, strings.Join(w.output, ","), rest)
}

func (w *responsesStream) begin() {
	w.event("created", w.response("in_progress", `,"incomplete_details":null`))
	w.event("in_progress", w.response("in_progress", `,"incomplete_details":null`))
}

// start makes sure that an item of this type is open.
func (w *responsesStream) start(kind string) {
	if w.open == kind {
		return
	}
	w.shut()
	w.open, w.said = kind, w.said[:0]
	w.event("output_item.added", fmt.Sprintf(`,"output_index":%d,"item":%s`, w.index, w.item("in_progress")))
	switch kind {
	case "message":
		w.event("content_part.added", w.place()+`,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
	case "reasoning":
		w.event("reasoning_summary_part.added", w.place()+`,"summary_index":0,"part":{"type":"summary_text","text":""}`)
	}
}

// item is the open item as its first and last events show it.
func (w *responsesStream) item(status string) string {
	id := fmt.Sprintf(`"id":"item_%d_%d","type":%q,"status":%q`, w.number, w.index, w.open, status)
	content := ""
	switch {
	case w.open == "message" && status == "completed":
		content = `{"type":"output_text","text":` + quote(string(w.said)) + `,"annotations":[]}`
		fallthrough
	case w.open == "message":
		return `{` + id + `,"role":"assistant","content":[` + content + `]}`
	case status == "completed":
		return `{` + id + `,"summary":[{"type":"summary_text","text":` + quote(string(w.said)) + `}],"encrypted_content":` + quote(w.signed) + `}`
	}
	return `{` + id + `,"summary":[],"encrypted_content":"partial"}`
}

// place is the item that an event is about.
func (w *responsesStream) place() string {
	return fmt.Sprintf(`,"item_id":"item_%d_%d","output_index":%d`, w.number, w.index, w.index)
}

// shut ends the open item.
func (w *responsesStream) shut() {
	text := quote(string(w.said))
	switch w.open {
	case "":
		return
	case "message":
		w.event("output_text.done", w.place()+`,"content_index":0,"logprobs":[],"text":`+text)
		w.event("content_part.done", w.place()+`,"content_index":0,"part":{"type":"output_text","annotations":[],"text":`+text+`}`)
	case "reasoning":
		if w.signed == "" {
			w.signed = w.sign(w.index)
		}
		w.event("reasoning_summary_text.done", w.place()+`,"summary_index":0,"text":`+text)
		w.event("reasoning_summary_part.done", w.place()+`,"summary_index":0,"part":{"type":"summary_text","text":`+text+`}`)
	}
	w.done(w.index, w.item("completed"))
	w.open, w.signed = "", ""
	w.index++
}

// done ends an item.
func (w *responsesStream) done(index int, item string) {
	w.output = append(w.output, item)
	w.event("output_item.done", fmt.Sprintf(`,"output_index":%d,"item":%s`, index, item))
}

func (w *responsesStream) text(s string) {
	w.start("message")
	w.said = append(w.said, s...)
	w.event("output_text.delta", w.place()+`,"content_index":0,"logprobs":[],"delta":`+quote(s))
}

func (w *responsesStream) prose(i, size int) {
	w.start("message")
	w.said = appendProse(w.said, i, size)
	w.buf = append(w.buf, "event: response.output_text.delta\ndata: "+`{"type":"response.output_text.delta","sequence_number":`...)
	w.buf = append(strconv.AppendInt(w.buf, int64(w.sequence), 10), w.place()...)
	w.buf = append(appendProse(append(w.buf, `,"content_index":0,"logprobs":[],"delta":"`...), i, size), `"}`+"\n\n"...)
	w.sequence++
}

func (w *responsesStream) reasoning(s, signature string) {
	w.start("reasoning")
	w.said = append(w.said, s...)
	w.event("reasoning_summary_text.delta", w.place()+`,"summary_index":0,"delta":`+quote(s))
	w.signed = signature
	w.issue(signature)
}

// calls alternates the argument pieces of the calls.
func (w *responsesStream) calls(calls []Call) {
	w.shut()
	first := w.index
	item := func(i int, args, status string) string {
		return fmt.Sprintf(`{"id":"item_%d_%d","type":"function_call","status":%q,"call_id":%s,"name":%s,"arguments":%s}`,
			w.number, first+i, status, quote(calls[i].ID), quote(calls[i].Name), quote(args))
	}
	rounds := 0
	for i, c := range calls {
		w.event("output_item.added", fmt.Sprintf(`,"output_index":%d,"item":%s`, first+i, item(i, "", "in_progress")))
		rounds = max(rounds, len(c.pieces()))
	}
	for round := range rounds {
		for i, c := range calls {
			if pieces := c.pieces(); round < len(pieces) {
				w.index = first + i
				w.event("function_call_arguments.delta", w.place()+`,"delta":`+quote(pieces[round]))
			}
		}
	}
	for i, c := range calls {
		w.index = first + i
		w.event("function_call_arguments.done", w.place()+`,"arguments":`+quote(c.Args))
		w.done(w.index, item(i, c.Args, "completed"))
	}
	w.index++
}

func (w *responsesStream) fault(reason string) {
	w.buf = append(w.buf, "event: error\ndata: "+`{"type":"error","sequence_number":`+strconv.Itoa(w.sequence)+`,"code":"server_error","param":null,"message":`+quote(reason)+"}\n\n"...)
}

func (w *responsesStream) end(st Step) {
	w.shut()
	u := w.usage(st)
	usage := fmt.Sprintf(`,"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		u.Prompt, u.PromptDetails.Cached, u.Completion, u.CompletionDetails.Reasoning, u.Total)
	reasons := map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"}
	if reason := reasons[w.finish(st)]; reason != "" {
		w.event("incomplete", w.response("incomplete", usage+`,"incomplete_details":{"reason":`+quote(reason)+`}`))
		return
	}
	w.event("completed", w.response("completed", usage+`,"incomplete_details":null`))
}

// dataURL decodes a URL of the scheme data, and leaves others as they are.
func dataURL(text string) Image {
	kind, data, found := strings.Cut(strings.TrimPrefix(text, "data:"), ";base64,")
	raw, err := base64.StdEncoding.DecodeString(data)
	if !found || err != nil {
		return Image{URL: text}
	}
	return Image{Type: kind, Data: raw}
}
