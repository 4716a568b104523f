package chatcompletions

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"lashd/engine/provider/endpoint"
)

// chunk is one event of a stream, or an answer in one piece, as far as lashd reads it.
type chunk struct {
	ID      endpoint.Fact     `json:"id"`
	Model   endpoint.Fact     `json:"model"`
	Tier    endpoint.Fact     `json:"service_tier"`
	Choices []choice          `json:"choices"`
	Usage   *wireUsage        `json:"usage"`
	Error   *endpoint.Failure `json:"error"`
}

type choice struct {
	Index   int    `json:"index"`
	Delta   delta  `json:"delta"`
	Message *delta `json:"message"` // in place of Delta, in one piece
	Finish  string `json:"finish_reason"`
}

// delta is what a chunk adds to the reply. Servers disagree on what reasoning is called; some say it twice.
type delta struct {
	Content          string      `json:"content"`
	Refusal          string      `json:"refusal"`
	ReasoningContent string      `json:"reasoning_content"`
	Reasoning        string      `json:"reasoning"`
	Calls            []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name string   `json:"name"`
		Args fragment `json:"arguments"`
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
func (c *chunk) text() (text string, reasoning, ok bool) {
	if c.Usage != nil || c.Error != nil || len(c.Choices) != 1 {
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
		return d.ReasoningContent, true, true
	}
	return "", false, false
}

// template is a shortcut for the chunks of running text, which differ from one another in that text alone. It holds the
// bytes before and after the text of such a chunk; a chunk with the same bytes around a string without escapes needs no
// decoding. encoding/json decodes all other chunks, so the template never changes the result.
type template struct {
	before, after []byte
	reasoning     bool
	met           int // chunks that were decoded
	credit        int // templates to make without a use before giving up, for servers whose chunks all differ
}

const (
	templateAfter  = 3 // chunks: a reply may be short, and the first chunk is often unlike the others
	templateCredit = 8
)

// cut returns the text of a chunk that fits the template.
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
