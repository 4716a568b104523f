package fakemodel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Request is one model request as the server received it.
type Request struct {
	Path       string
	API        string      // name of the API that the path belongs to
	Header     http.Header // Accept, Content-Type, User-Agent; secrets are never kept
	Authorized bool        // it had a key
	Chat       Chat        // the decoded body
	Body       []byte      // the body as sent; nil for old requests once 64 MiB are held
	Size       int         // bytes of body

	Start time.Time   // headers received
	Read  time.Time   // body received
	Sent  []time.Time // just before each delta was written; only for markers with us > 0
	End   time.Time   // reply written or broken off; zero while it runs
}

func newRequest(r *http.Request) *Request {
	kept := http.Header{}
	for _, k := range []string{"Accept", "Content-Type", "User-Agent"} {
		if v := r.Header.Values(k); len(v) > 0 {
			kept[k] = v
		}
	}
	name := apiOf(r.URL.Path)
	key, _ := apis[name].authenticate(r.Header)
	return &Request{Path: r.URL.EscapedPath(), API: name, Header: kept, Authorized: key != "", Start: time.Now()}
}

// Chat is the part of a model request that tests look at, in the same form for all APIs.
type Chat struct {
	Model           string
	Messages        []Message
	Tools           []Tool
	Stream          bool
	StreamOptions   Options
	ReasoningEffort string
}

// Options are the stream options of a request of Chat Completions.
type Options struct {
	IncludeUsage bool `json:"include_usage"`
}

// Message is one entry of the conversation. A tool result is a message of its own, with the role "tool". In Responses, each item is
// a message.
type Message struct {
	Role       string     `json:"role"`
	Content    Text       `json:"-"`
	Images     []Image    `json:"-"` // and documents
	Reasoning  string     `json:"reasoning_content"`
	Signatures []string   `json:"-"` // what proves to the API that reasoning is its own, as it was sent back
	ToolCalls  []SentCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// Image is an image or a document of a message. It has Data or URL.
type Image struct {
	Type string // media type; "" for a URL of OpenAI's APIs
	Data []byte
	URL  string
}

// SentCall is a tool call that the client sent back as history.
type SentCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func newSentCall(id, name, args string) SentCall {
	c := SentCall{ID: id}
	c.Function.Name, c.Function.Arguments = name, args
	return c
}

// Tool is a tool offered to the model.
type Tool struct {
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func newTool(name, description string, schema json.RawMessage) Tool {
	var t Tool
	t.Function.Name, t.Function.Description, t.Function.Parameters = name, description, schema
	return t
}

// Text is the text of a message.
type Text string

// content is message content of OpenAI's APIs, and that of tool results: a string or parts.
type content struct {
	text   string
	images []Image
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '[' {
		return json.Unmarshal(b, &c.text)
	}
	var parts []struct {
		Text     string          `json:"text"`
		ImageURL json.RawMessage `json:"image_url"` // a string, or an object with one
		FileData string          `json:"file_data"`
		FileURL  string          `json:"file_url"`
		File     struct {
			Data string `json:"file_data"`
		} `json:"file"`
		Source *anthropicSource `json:"source"` // in results of Anthropic's API
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.text += p.Text
		if p.Source != nil {
			c.images = append(c.images, Image{Type: p.Source.MediaType, Data: p.Source.Data, URL: p.Source.URL})
		}
		for _, link := range []string{imageURL(p.ImageURL), p.FileData, p.FileURL, p.File.Data} {
			if link != "" {
				c.images = append(c.images, dataURL(link))
			}
		}
	}
	return nil
}

// imageURL decodes an image_url of either OpenAI API.
func imageURL(raw json.RawMessage) string {
	var text string
	var object struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(raw, &text) != nil {
		json.Unmarshal(raw, &object) // neither form: no image
	}
	return cmp.Or(text, object.URL)
}

// tail is what scripts look at: the end of the conversation and how to answer it.
type tail struct {
	User    string // text of the last user message
	Results int    // tool results after it
	Model   string
	Stream  bool
	Usage   bool // the client wants a usage chunk
}

var errNoMessages = errors.New("request has no messages")

// parseTail decodes all but the messages before the last user message: a
// benchmark sends a long history again with each request, and decoding it
// would cost more than the daemon under test.
func parseTail(r *Request) (tail, error) {
	a := apis[r.API]
	list, rest := splitMessages(r.Body, a.list())
	if len(list) == 0 {
		return tail{}, errNoMessages
	}
	var c Chat
	if err := a.settings(&c, r.Path, rest); err != nil {
		return tail{}, fmt.Errorf("decode request: %w", err)
	}
	t := tail{Model: c.Model, Stream: c.Stream, Usage: c.StreamOptions.IncludeUsage}
	for i := len(list) - 1; i >= 0; i-- {
		messages, err := a.messages(list[i])
		if err != nil {
			return tail{}, fmt.Errorf("decode message %d: %w", i, err)
		}
		for _, m := range slices.Backward(messages) {
			switch m.Role {
			case "user":
				t.User = string(m.Content)
				return t, nil
			case "tool":
				t.Results++
			}
		}
	}
	return t, nil
}

// parseChat decodes the whole request, as far as it can be decoded.
func parseChat(r *Request) (c Chat, err error) {
	a := apis[r.API]
	list, rest := splitMessages(r.Body, a.list())
	if err := a.settings(&c, r.Path, rest); err != nil {
		return c, err
	}
	for _, raw := range list {
		messages, err := a.messages(raw)
		if err != nil {
			return c, err
		}
		c.Messages = append(c.Messages, messages...)
	}
	return c, nil
}

// splitMessages returns the elements of the array with the conversation undecoded, and the
// request without them. It gives no messages for what is not a request with that member.
func splitMessages(body []byte, member string) (list [][]byte, rest []byte) {
	var key []byte // the last string seen directly inside the request object
	depth, open, start := 0, -1, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			end := stringEnd(body, i)
			if end < 0 {
				return nil, nil
			}
			if depth == 1 {
				key = body[i+1 : end]
			}
			i = end
		case '{', '[':
			depth++
			if depth == 2 && body[i] == '[' && string(key) == member {
				open = i
			}
			if depth == 3 && open >= 0 {
				start = i
			}
		case '}', ']':
			if depth == 3 && open >= 0 {
				list = append(list, body[start:i+1])
			}
			if depth == 2 && open >= 0 {
				return list, bytes.Join([][]byte{body[:open+1], body[i:]}, nil)
			}
			depth--
		}
	}
	return nil, nil
}

// stringEnd is the index of the quote that closes the string opened at i, or -1.
func stringEnd(b []byte, i int) int {
	for j := i + 1; ; j++ {
		n := bytes.IndexByte(b[j:], '"')
		if n < 0 {
			return -1
		}
		j += n
		slashes := 0
		for b[j-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return j
		}
	}
}
