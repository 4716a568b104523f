package chatcompletions

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"lashd/engine/provider/endpoint"
)

// chunk is one event of a stream, or an answer in one piece, as far as lashd reads it.
// The last chunk may have the usage and no choice.
type chunk struct {
	ID      endpoint.Fact                `json:"id"`           // of the reply, kept as evidence
	Model   endpoint.Fact                `json:"model"`        // id of the model that answers
	Tier    endpoint.Fact                `json:"service_tier"` // service tier that served the call
	Choices []choice                     `json:"choices"`      // lashd reads only the one with index 0
	Usage   endpoint.Optional[wireUsage] `json:"usage"`        // none in most chunks
	Error   *endpoint.Failure            `json:"error"`        // of a reply that fails
}

// choice is one alternative reply, or the next piece of it.
type choice struct {
	Index   int    `json:"index"`         // 0 for the reply that lashd reads
	Delta   delta  `json:"delta"`         // what a chunk of a stream adds
	Message *delta `json:"message"`       // in place of Delta, in one piece
	Finish  string `json:"finish_reason"` // why the reply ended; "" until then
}

// delta is what a chunk adds to the reply. Servers disagree on what reasoning is called; some say it twice.
type delta struct {
	Content          string        `json:"content"`           // text of the reply
	Refusal          endpoint.Fact `json:"refusal"`           // text in which the model declines; shown as text of the reply
	ReasoningContent endpoint.Fact `json:"reasoning_content"` // some servers' name for reasoning; counts before Reasoning
	Reasoning        endpoint.Fact `json:"reasoning"`         // used if ReasoningContent is empty
	Calls            []callDelta   `json:"tool_calls"`        // fragments of tool calls
}

// callDelta is a fragment of a tool call.
type callDelta struct {
	Index    *int          `json:"index"` // of the call in the reply; nil: the server does not number its calls
	ID       endpoint.Fact `json:"id"`    // in the first fragment of a call
	Function struct {
		Name string   `json:"name"`      // in the first fragment of a call
		Args fragment `json:"arguments"` // in every fragment; the pieces joined are the JSON
	} `json:"function"`
}

// fragment is a piece of a call's arguments. Some servers send the object instead of its text.
type fragment string

// UnmarshalJSON implements json.Unmarshaler.
func (f *fragment) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(f))
	}
	if !bytes.Equal(data, []byte("null")) {
		*f = fragment(data)
	}
	return nil
}

// text returns the chunk's text or reasoning, and reports whether it holds nothing else.
// The template may stand for such a chunk; any other field would be lost.
func (c *chunk) text() (text string, reasoning, ok bool) {
	if c.Usage.Value != nil || c.Error != nil || len(c.Choices) != 1 {
		return "", false, false
	}
	only := &c.Choices[0]
	d := &only.Delta
	if only.Index != 0 || only.Message != nil || only.Finish != "" || d.Calls != nil || d.Refusal != "" {
		return "", false, false
	}
	switch {
	case d.Content != "" && d.ReasoningContent == "" && d.Reasoning == "":
		return d.Content, false, true
	case d.Content == "" && d.ReasoningContent != "" && d.Reasoning == "":
		return string(d.ReasoningContent), true, true
	}
	return "", false, false
}

// template is a shortcut for the chunks of running text, which differ from one another in that text alone. It holds the
// bytes before and after the text of such a chunk; a chunk with the same bytes around a string without escapes needs no
// decoding. encoding/json decodes all other chunks, so the template never changes the result.
type template struct {
	before, after []byte
	reasoning     bool // the text is reasoning
	met           int  // chunks that were decoded
	credit        int  // templates to make without a use before giving up, for servers whose chunks all differ
}

const (
	templateAfter  = 3 // chunks: a reply may be short, and the first chunk is often unlike the others
	templateCredit = 8
)

// cut returns the text of a chunk that fits the template.
// The bytes of text are those of data, without a copy. ok is false if the chunk must be decoded.
func (t *template) cut(data []byte) (text []byte, ok bool) {
	if t.before == nil || len(data) <= len(t.before)+len(t.after) ||
		!bytes.HasPrefix(data, t.before) || !bytes.HasSuffix(data, t.after) {
		return nil, false
	}
	text = data[len(t.before) : len(data)-len(t.after)]
	if !plain(text) {
		return nil, false
	}
	t.credit = templateCredit
	return text, true
}

// plain reports whether bytes between quotes need no unescaping.
// They also have to be valid UTF-8, as encoding/json would replace other bytes.
func plain(text []byte) bool {
	ascii := true
	for _, b := range text {
		if b < ' ' || b == '"' || b == '\\' {
			return false
		}
		ascii = ascii && b < utf8.RuneSelf
	}
	return ascii || utf8.Valid(text)
}

// learn makes the template from a chunk that was decoded. Where in the bytes the text stands is a guess, so it is tried:
// other text in that place must decode to that other text.
func (t *template) learn(data []byte, c *chunk) {
	text, reasoning, ok := c.text()
	if t.met++; t.met < templateAfter || !ok || t.credit == 0 || !plain([]byte(text)) {
		return
	}
	t.credit--
	quoted := `"` + text + `"`
	at := bytes.LastIndex(data, []byte(quoted))
	if at < 0 {
		return
	}
	before := data[:at+1]
	after := data[at+1+len(text):]
	other := text + "+"
	var tried chunk
	if json.Unmarshal(bytes.Join([][]byte{before, after}, []byte(other)), &tried) != nil {
		return
	}
	if got, kind, ok := tried.text(); !ok || got != other || kind != reasoning {
		return
	}
	t.before, t.after, t.reasoning = bytes.Clone(before), bytes.Clone(after), reasoning
}
