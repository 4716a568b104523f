package protocol

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a message.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
	RoleEvent     Role = "event" // why the session was woken; the model reads it as a user's message
)

// Message is one entry of a conversation.
type Message struct {
	Role   Role    `json:"role"`
	Parts  []Part  `json:"parts"`
	Origin *Origin `json:"origin,omitempty"`
}

// PartKind says what a part of a message holds.
type PartKind string

const (
	PartText       PartKind = "text"       // what a person or plugin wrote
	PartProse      PartKind = "prose"      // what the model wrote for the person
	PartCommentary PartKind = "commentary" // what the model said on its way to an answer; prose is the answer, if there is any
	PartReasoning  PartKind = "reasoning"  // what the model thought; replayed only as the provider's own blocks
	PartToolCall   PartKind = "toolCall"   // Call is set
	PartToolResult PartKind = "toolResult" // Result is set
	PartCode       PartKind = "code"       // a code cell
	PartOutput     PartKind = "output"     // what a code cell printed
	PartError      PartKind = "error"      // an error shown to the person
	PartAttachment PartKind = "attachment" // Attachment is set
)

// Part is one piece of a message. Kind tells which of the fields is set.
type Part struct {
	Kind       PartKind        `json:"kind"`
	Text       string          `json:"text,omitempty"`
	Call       *ToolCall       `json:"call,omitempty"`
	Result     *ToolResult     `json:"result,omitempty"`
	Attachment *Attachment     `json:"attachment,omitempty"`
	Replay     json.RawMessage `json:"replay,omitempty"` // the provider's own block, opaque to all but its adapter
	Route      string          `json:"route,omitempty"`  // provider, endpoint and model that Replay belongs to
	Prune      *Prune          `json:"prune,omitempty"`  // only in prompt views; stored nodes are intact
}

// PruneState says how much of a part a prompt view still shows.
type PruneState string

const (
	PruneCleared    PruneState = "cleared"
	PruneDeleted    PruneState = "deleted"
	PruneSummarised PruneState = "summarised"
)

// Prune marks a part that a prompt view shortened; its absence means intact.
type Prune struct {
	State      PruneState `json:"state"`
	Breadcrumb string     `json:"breadcrumb,omitempty"` // what is shown instead
	Archive    Digest     `json:"archive,omitempty"`    // of the part's whole content
}

// Attachment is a file that came with an input.
type Attachment struct {
	Name   string `json:"name,omitempty"`
	Type   string `json:"type"`             // media type
	Data   []byte `json:"data,omitempty"`   // inline, base64 on the wire
	Digest Digest `json:"digest,omitempty"` // stored
	URL    string `json:"url,omitempty"`    // external
}

// OriginKind says where a message that no person typed came from.
type OriginKind string

const (
	OriginTurnInput OriginKind = "turnInput"
	OriginPlugin    OriginKind = "plugin"
	OriginProcess   OriginKind = "process"
)

// Origin records where a message came from.
type Origin struct {
	Kind      OriginKind `json:"kind"`
	TurnID    TurnID     `json:"turnId,omitempty"`
	InputID   InputID    `json:"inputId,omitempty"`
	Plugin    string     `json:"plugin,omitempty"`
	Cause     *TurnCause `json:"cause,omitempty"`     // of a message that woke the session, whose text says what the model is told
	Transient bool       `json:"transient,omitempty"` // shown to the model once, never stored
}

// InputPart is one piece of what a person sends: text or an attachment.
type InputPart struct {
	Type       InputType   `json:"type"`
	Text       string      `json:"text,omitempty"`
	Attachment *Attachment `json:"attachment,omitempty"`
}

// InputSize is the size of text and attachments, in bytes.
func InputSize(parts []InputPart) (size int) {
	for _, p := range parts {
		size += len(p.Text)
		if p.Attachment != nil {
			size += len(p.Attachment.Data)
		}
	}
	return size
}

// InputType is the kind of an input part.
type InputType string

const (
	InputText       InputType = "text"
	InputAttachment InputType = "attachment"
)

// UserMessage turns an input into the message that enters the conversation.
func UserMessage(parts []InputPart, origin *Origin) Message {
	m := Message{Role: RoleUser, Origin: origin}
	for _, p := range parts {
		if p.Type == InputAttachment {
			m.Parts = append(m.Parts, Part{Kind: PartAttachment, Attachment: p.Attachment})
			continue
		}
		m.Parts = append(m.Parts, Part{Kind: PartText, Text: p.Text})
	}
	return m
}

// Cause is why the message woke the session; nil: it did not.
func (m *Message) Cause() *TurnCause {
	if m.Origin == nil {
		return nil
	}
	return m.Origin.Cause
}

// Text joins the parts of one kind.
func (m *Message) Text(kind PartKind) string {
	var text strings.Builder
	for i := range m.Parts {
		if m.Parts[i].Kind == kind {
			text.WriteString(m.Parts[i].Text)
		}
	}
	return text.String()
}

// Answer is what the model says to the person: its prose, or what it said on the way if there is no more.
func (m *Message) Answer() string {
	if text := m.Text(PartProse); strings.TrimSpace(text) != "" {
		return text
	}
	return m.Text(PartCommentary)
}

// Calls lists the tool calls of a message in the order the model gave them.
func (m *Message) Calls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if p.Kind == PartToolCall {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}
