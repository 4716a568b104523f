package fakemodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Request is one chat request as the server received it.
type Request struct {
	Path       string
	Header     http.Header // Accept, Content-Type, User-Agent; secrets are never kept
	Authorized bool        // it had an Authorization header
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
	return &Request{
		Path:       r.URL.Path,
		Header:     kept,
		Authorized: r.Header.Get("Authorization") != "",
		Start:      time.Now(),
	}
}

// Chat is the part of a chat request that tests look at.
type Chat struct {
	Model           string    `json:"model"`
	Messages        []Message `json:"messages"`
	Tools           []Tool    `json:"tools"`
	Stream          bool      `json:"stream"`
	StreamOptions   Options   `json:"stream_options"`
	ReasoningEffort string    `json:"reasoning_effort"`
}

// Options are the stream options of a request.
type Options struct {
	IncludeUsage bool `json:"include_usage"`
}

// Message is one entry of the conversation.
type Message struct {
	Role       string     `json:"role"`
	Content    Text       `json:"content"`
	Reasoning  string     `json:"reasoning_content"`
	ToolCalls  []SentCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// SentCall is a tool call that the client sent back as history.
type SentCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Tool is a tool offered to the model.
type Tool struct {
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Text is message content, sent either as a string or as parts, of which the text ones count.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '[' {
		return json.Unmarshal(b, (*string)(t))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	*t = Text(all.String())
	return nil
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
func parseTail(body []byte) (tail, error) {
	list, rest := splitMessages(body)
	if len(list) == 0 {
		return tail{}, errNoMessages
	}
	var c Chat
	if err := json.Unmarshal(rest, &c); err != nil {
		return tail{}, fmt.Errorf("decode request: %w", err)
	}
	t := tail{Model: c.Model, Stream: c.Stream, Usage: c.StreamOptions.IncludeUsage}
	for i := len(list) - 1; i >= 0; i-- {
		var m Message
		if err := json.Unmarshal(list[i], &m); err != nil {
			return tail{}, fmt.Errorf("decode message %d: %w", i, err)
		}
		switch m.Role {
		case "user":
			t.User = string(m.Content)
			return t, nil
		case "tool":
			t.Results++
		}
	}
	return t, nil
}

// splitMessages returns the elements of the messages array undecoded, and the
// request without them. It gives no messages for what is not a chat request.
func splitMessages(body []byte) (list [][]byte, rest []byte) {
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
			if depth == 2 && body[i] == '[' && string(key) == "messages" {
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
