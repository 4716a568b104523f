package fakemodel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// geminiAPI is Google Gemini.
type geminiAPI struct{}

func (geminiAPI) list() string { return "contents" }

// settings decodes a request. The path has the model and says that the reply is streamed.
func (geminiAPI) settings(chat *Chat, path string, rest []byte) error {
	var r struct {
		Tools []struct {
			Declarations []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Schema      json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Generation struct {
			Thinking struct {
				Level string `json:"thinkingLevel"`
			} `json:"thinkingConfig"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(rest, &r); err != nil {
		return err
	}
	for _, t := range r.Tools {
		for _, d := range t.Declarations {
			chat.Tools = append(chat.Tools, newTool(d.Name, d.Description, d.Schema))
		}
	}
	chat.ReasoningEffort = strings.ToLower(r.Generation.Thinking.Level)
	name, method, _ := strings.Cut(strings.TrimPrefix(path, "/v1beta/models/"), ":")
	model, err := url.PathUnescape(name)
	chat.Model, chat.Stream = model, method == "streamGenerateContent"
	return err
}

// geminiPart is one part of a content of a request.
type geminiPart struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Inline    *struct {
		Type string `json:"mimeType"`
		Data []byte `json:"data"`
	} `json:"inlineData"`
	File *struct {
		Type string `json:"mimeType"`
		URL  string `json:"fileUri"`
	} `json:"fileData"`
	Call *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string            `json:"id"`
		Response map[string]string `json:"response"`
		Parts    []geminiPart      `json:"parts"` // files
	} `json:"functionResponse"`
}

// messages splits a user's content into its function responses and the rest.
func (geminiAPI) messages(element []byte) ([]Message, error) {
	var c struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	}
	if err := json.Unmarshal(element, &c); err != nil {
		return nil, err
	}
	if len(c.Parts) == 0 {
		return nil, errors.New("a content has no parts")
	}
	var list []Message
	rest := Message{Role: c.Role}
	if c.Role == "model" {
		rest.Role = "assistant"
	}
	used := false
	for _, p := range c.Parts {
		if p.Response != nil {
			text := p.Response.Response["output"] + p.Response.Response["error"]
			result := Message{Role: "tool", ToolCallID: p.Response.ID, Content: Text(text)}
			for i := range p.Response.Parts {
				p.Response.Parts[i].addTo(&result)
			}
			list = append(list, result)
			continue
		}
		used = true
		p.addTo(&rest)
	}
	if used {
		list = append(list, rest)
	}
	return list, nil
}

func (p *geminiPart) addTo(m *Message) {
	if p.Signature != "" {
		m.Signatures = append(m.Signatures, p.Signature)
	}
	switch {
	case p.Inline != nil:
		m.Images = append(m.Images, Image{Type: p.Inline.Type, Data: p.Inline.Data})
	case p.File != nil:
		m.Images = append(m.Images, Image{Type: p.File.Type, URL: p.File.URL})
	case p.Call != nil:
		m.ToolCalls = append(m.ToolCalls, newSentCall(p.Call.ID, p.Call.Name, string(p.Call.Args)))
	case p.Thought:
		m.Reasoning += p.Text
	default:
		m.Content += Text(p.Text)
	}
}

func (geminiAPI) authenticate(h http.Header) (string, error) { return h.Get("X-Goog-Api-Key"), nil }

func (geminiAPI) failure(status int, message string) any {
	names := map[int]string{401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
	type body struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	}
	return struct {
		Error body `json:"error"`
	}{body{status, message, cmp.Or(names[status], "INVALID_ARGUMENT")}}
}

func (geminiAPI) stream(r *reply) wire { return &geminiStream{reply: r} }

// geminiStream writes one event for each part. Lines end with CR LF, as those of the vendor do.
type geminiStream struct {
	*reply
	thought   bool   // reasoning came that no signature has followed
	signature string // for it; "" for one of the reply's number
}

const geminiEnd = "\r\n\r\n"

// parts appends an event with these parts of the reply and the other members of its candidate.
func (w *geminiStream) parts(parts, rest string) {
	w.buf = append(w.buf, `data: {"candidates":[{"content":{"parts":[`+parts+`],"role":"model"}`+rest+`,"index":0}]`...)
	w.buf = append(w.buf, w.trailer()+geminiEnd...)
}

// trailer is the end of every event.
func (w *geminiStream) trailer() string {
	u := w.usage(w.step)
	output := u.Completion - u.CompletionDetails.Reasoning
	return fmt.Sprintf(`,"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d},"modelVersion":%s,"responseId":"reply-%d"}`,
		u.Prompt, u.PromptDetails.Cached, output, u.CompletionDetails.Reasoning, u.Total, quote(w.tail.Model), w.number)
}

func (w *geminiStream) begin() {}

func (w *geminiStream) text(s string) { w.parts(`{"text":`+quote(s)+`}`, "") }

func (w *geminiStream) prose(i, size int) {
	w.buf = append(w.buf, `data: {"candidates":[{"content":{"parts":[{"text":"`...)
	w.buf = append(appendProse(w.buf, i, size), `"}],"role":"model"},"index":0}],"modelVersion":"fake","responseId":"reply"}`+geminiEnd...)
}

func (w *geminiStream) reasoning(s, signature string) {
	w.parts(`{"text":`+quote(s)+`,"thought":true}`, "")
	w.thought, w.signature = true, signature
	w.issue(signature)
}

// signed is the member that signs the reasoning before it, "" if there was none.
func (w *geminiStream) signed() string {
	if !w.thought {
		return ""
	}
	w.thought = false
	if w.signature == "" {
		w.signature = w.sign(0)
	}
	return `,"thoughtSignature":` + quote(w.signature)
}

// calls writes whole calls in one event. The first one carries the signature. The vendor gives calls no ids.
func (w *geminiStream) calls(calls []Call) {
	var parts []string
	for _, c := range calls {
		id := ""
		if !c.numbered {
			id = `"id":` + quote(c.ID) + `,`
		}
		parts = append(parts, `{"functionCall":{`+id+`"name":`+quote(c.Name)+`,"args":`+cmp.Or(c.Args, "{}")+`}`+w.signed()+`}`)
	}
	w.parts(strings.Join(parts, ","), "")
}

func (w *geminiStream) fault(reason string) {
	w.buf = append(append(append(w.buf, "data: "...), mustMarshal(geminiAPI{}.failure(http.StatusServiceUnavailable, reason))...), geminiEnd...)
}

func (w *geminiStream) end(st Step) {
	reasons := map[string]string{"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
	reason := w.finish(st)
	w.parts(`{"text":""`+w.signed()+`}`, `,"finishReason":`+quote(cmp.Or(reasons[reason], reason)))
}
