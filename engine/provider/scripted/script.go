package scripted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Script is a transcript to play. The package comment describes its file format.
type Script struct {
	Models    []string `json:"models,omitempty"` // of scripts that have it; nothing asks for it
	Turns     []Turn   `json:"turns"`
	Otherwise *Turn    `json:"otherwise,omitempty"`
}

// Turn answers one message of the user: its n-th reply is played when n-1 assistant messages follow that message.
type Turn struct {
	Match   *Match  `json:"match,omitempty"`
	Replies []Reply `json:"replies"`
}

// Match chooses a turn by what the user wrote.
type Match struct {
	LastUserContains string `json:"lastUserContains"`
}

// Reply is one answer of the model.
type Reply struct {
	Expect    *Expect             `json:"expect,omitempty"`
	Reasoning string              `json:"reasoning,omitempty"`
	Text      string              `json:"text,omitempty"`
	Before    string              `json:"commentary,omitempty"` // comes before the text
	ChunkSize int                 `json:"chunkSize,omitempty"`
	DelayMs   int64               `json:"delayMs,omitempty"`
	ToolCalls []Call              `json:"toolCalls,omitempty"`
	Usage     *protocol.Usage     `json:"usage,omitempty"`
	Stop      protocol.StopReason `json:"stop,omitempty"`
	Error     *Failure            `json:"error,omitempty"`
	Stall     bool                `json:"stall,omitempty"`
}

// Expect is what must hold of the request that a reply is played for.
type Expect struct {
	AfterToolResults   *bool  `json:"afterToolResults,omitempty"`
	LastResultContains string `json:"lastResultContains,omitempty"`
}

// Call is a tool call of the model.
type Call struct {
	ID   protocol.CallID `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Failure breaks a reply off.
type Failure struct {
	Kind         provider.ErrorKind  `json:"kind"`
	Code         string              `json:"code"`
	Message      string              `json:"message,omitempty"`
	Status       int                 `json:"status,omitempty"`
	Retryable    bool                `json:"retryable,omitempty"`
	RetryAfterMs int64               `json:"retryAfterMs,omitempty"`
	Throttled    bool                `json:"throttled,omitempty"`
	Stop         protocol.StopReason `json:"stop,omitempty"`
	AfterChunks  int                 `json:"afterChunks,omitempty"`
	Times        int                 `json:"times,omitempty"`
}

// Load reads a script from a file.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("load script %s: %w", path, err)
	}
	return s, nil
}

// Parse reads a script. Fields it does not know are an error.
func Parse(data []byte) (*Script, error) {
	var s Script
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the script")
	}
	return &s, s.check()
}

func (s *Script) check() error {
	for i, t := range s.Turns {
		if err := t.check(); err != nil {
			return fmt.Errorf("turns[%d]: %w", i, err)
		}
	}
	if s.Otherwise == nil {
		return nil
	}
	if s.Otherwise.Match != nil {
		return errors.New("otherwise: has a match")
	}
	if err := s.Otherwise.check(); err != nil {
		return fmt.Errorf("otherwise: %w", err)
	}
	return nil
}

func (t *Turn) check() error {
	if len(t.Replies) == 0 {
		return errors.New("no replies")
	}
	for i, r := range t.Replies {
		for j, c := range r.ToolCalls {
			if c.Name == "" {
				return fmt.Errorf("replies[%d].toolCalls[%d]: no name", i, j)
			}
		}
		if r.ChunkSize < 0 || r.DelayMs < 0 {
			return fmt.Errorf("replies[%d]: negative chunkSize or delayMs", i)
		}
		if r.Error != nil && (r.Error.Kind == "" || r.Error.Code == "") {
			return fmt.Errorf("replies[%d].error: needs kind and code", i)
		}
	}
	return nil
}

// moment is what the choice of a reply depends on: nothing but the conversation.
type moment struct {
	users   []string // what the user wrote, oldest first
	replies int      // assistant messages since then
	results []string // of the last message, if it holds results of tools or code
}

// read finds the moment of a conversation. Transient messages are not a part of it: they come and go between the calls
// of one turn. The reasons for a wake stay at the end after each reply of the turn.
func read(messages []*protocol.Message) moment {
	if last := len(messages) - 1; last >= 0 && messages[last].Role == protocol.RoleEvent {
		m := read(messages[:last])
		m.users = append(m.users, messages[last].Text(protocol.PartText))
		m.replies = ofTurn(messages[:last])
		return m
	}
	var m moment
	for _, msg := range messages {
		if msg.Origin != nil && msg.Origin.Transient {
			continue
		}
		m.results = nil
		switch {
		case msg.Role == protocol.RoleAssistant:
			m.replies++
		case msg.Role == protocol.RoleUser || msg.Role == protocol.RoleEvent:
			m.add(msg)
		}
	}
	return m
}

// ofTurn counts the replies of a turn that has not ended: those that come after the last one without calls, and after whatever
// the user wrote since.
func ofTurn(messages []*protocol.Message) (n int) {
	for _, msg := range messages {
		switch {
		case msg.Role == protocol.RoleAssistant && len(msg.Calls()) > 0:
			n++
		case msg.Role == protocol.RoleAssistant, msg.Text(protocol.PartText) != "":
			n = 0
		}
	}
	return n
}

// heard is what a model reads of a result: its value, or why it failed, where there is no text.
func heard(out *protocol.ToolOutput) string {
	text := cmp.Or(out.Text, string(out.Value))
	if text == "" && out.Failure != nil {
		text = out.Failure.Message
	}
	return out.Noted(text)
}

func (m *moment) add(msg *protocol.Message) {
	said := false
	for _, p := range msg.Parts {
		switch p.Kind {
		case protocol.PartToolResult:
			m.results = append(m.results, heard(&p.Result.Output))
		case protocol.PartOutput:
			m.results = append(m.results, p.Text)
		case protocol.PartText, protocol.PartAttachment:
			said = true
		}
	}
	if said {
		m.users = append(m.users, msg.Text(protocol.PartText))
		m.replies = 0
	}
}

// pick chooses the reply for a moment.
func (s *Script) pick(m moment) (*Reply, error) {
	if len(m.users) == 0 {
		return nil, refuse("script_exhausted", "the conversation has no message of the user")
	}
	turn := s.turn(m.users)
	if turn == nil {
		return nil, refuse("script_exhausted", fmt.Sprintf("no turn is left for %q", m.users[len(m.users)-1]))
	}
	if m.replies >= len(turn.Replies) {
		return nil, refuse("script_exhausted", fmt.Sprintf("the turn for %q has %d replies, and another was asked for",
			m.users[len(m.users)-1], len(turn.Replies)))
	}
	r := &turn.Replies[m.replies]
	return r, r.Expect.check(m)
}

// turn is the one whose match fits the last message. The messages that no match fits take the turns without a match,
// one after the other.
func (s *Script) turn(users []string) *Turn {
	unmatched := 0
	for _, text := range users[:len(users)-1] {
		if s.matched(text) == nil {
			unmatched++
		}
	}
	if t := s.matched(users[len(users)-1]); t != nil {
		return t
	}
	for i := range s.Turns {
		if s.Turns[i].Match != nil {
			continue
		}
		if unmatched == 0 {
			return &s.Turns[i]
		}
		unmatched--
	}
	return s.Otherwise
}

func (s *Script) matched(text string) *Turn {
	for i, t := range s.Turns {
		if t.Match != nil && strings.Contains(text, t.Match.LastUserContains) {
			return &s.Turns[i]
		}
	}
	return nil
}

func (e *Expect) check(m moment) error {
	if e == nil {
		return nil
	}
	if want := e.AfterToolResults; want != nil && *want != (m.results != nil) {
		return refuse("script_mismatch", fmt.Sprintf("afterToolResults is %t, the script expects %t", m.results != nil, *want))
	}
	for _, text := range m.results {
		if strings.Contains(text, e.LastResultContains) {
			return nil
		}
	}
	if e.LastResultContains == "" {
		return nil
	}
	return refuse("script_mismatch", fmt.Sprintf("no tool result of the last message contains %q", e.LastResultContains))
}

func refuse(code, message string) *provider.Error {
	return &provider.Error{Kind: provider.KindValidation, Code: code, Message: message}
}
