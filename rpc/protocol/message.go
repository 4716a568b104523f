package protocol

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Role is the author of a message.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
	RoleEvent     Role = "event" // the text of a wake, or lashd's answer to an invalid reply; the model reads it as a user message
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
	PartText       PartKind = "text"       // text from a person, a program or a plugin
	PartProse      PartKind = "prose"      // the model's reply
	PartCommentary PartKind = "commentary" // text that the model wrote between steps, before its reply
	PartReasoning  PartKind = "reasoning"  // the model's reasoning; sent back only as the provider's own blocks
	PartToolCall   PartKind = "toolCall"   // Call is set
	PartToolResult PartKind = "toolResult" // Result is set
	PartCode       PartKind = "code"       // a code cell, with the tags around it
	PartOutput     PartKind = "output"     // what the model reads of the result of a code cell; Cell is set
	PartError      PartKind = "error"      // an error for display
	PartAttachment PartKind = "attachment" // Attachment is set
)

// Part is one piece of a message. Kind determines which other fields are set.
type Part struct {
	Kind       PartKind        `json:"kind"`
	Text       string          `json:"text,omitempty"`
	Call       *ToolCall       `json:"call,omitempty"`
	Decision   *CallDecision   `json:"decision,omitempty"` // over the call; only lashd sets it, once the call is decided
	Result     *ToolResult     `json:"result,omitempty"`
	Attachment *Attachment     `json:"attachment,omitempty"`
	Cell       *CodeResult     `json:"cell,omitempty"`
	Replay     json.RawMessage `json:"replay,omitempty"` // the provider's own block; only its adapter reads it
	Route      string          `json:"route,omitempty"`  // provider, endpoint and model that produced Replay
	Prune      *Prune          `json:"prune,omitempty"`  // set only in prompt views; stored nodes are never pruned
}

// PruneState says how a prompt view shortened a part.
type PruneState string

const (
	PruneCleared    PruneState = "cleared"
	PruneDeleted    PruneState = "deleted"
	PruneSummarised PruneState = "summarised"
)

// Prune marks a part that a prompt view shortened.
type Prune struct {
	State      PruneState `json:"state"`
	Breadcrumb string     `json:"breadcrumb,omitempty"` // text shown instead
	Archive    Digest     `json:"archive,omitempty"`    // digest of the part's full content
}

// Attachment is a file in an input or in a tool result: an image (PNG, JPEG, GIF or WebP, at most 5 MiB and 8000 pixels wide and
// high), a PDF document (at most 32 MiB) or UTF-8 text (at most 4 MiB). It has data, a digest or a URL. lashd stores data over 4 KiB by
// its digest; clients read it with artifact/read.
type Attachment struct {
	Name   string `json:"name,omitempty"`
	Type   string `json:"type"`             // media type; lashd corrects it to what the contents show
	Data   []byte `json:"data,omitempty"`   // the contents, base64 on the wire
	Digest Digest `json:"digest,omitempty"` // digest of an artifact of the session
	URL    string `json:"url,omitempty"`    // address of external contents; lashd passes it to the model and never fetches it

	Tokens int64 `json:"estimatedTokens,omitempty"` // set by lashd from dimensions, pages or size; absent: unknown
}

// unknownTokens is what an attachment counts whose contents lashd does not know.
const unknownTokens = 1200

// EstimatedTokens returns about how many tokens of a model's context the attachment takes.
func (a *Attachment) EstimatedTokens() int64 { return cmp.Or(a.Tokens, unknownTokens) }

// BytesPerToken is a common average for English text and code.
const BytesPerToken = 4

// EstimatedTokens returns about how many tokens of a model's context the part takes, without the model's tokenizer. Of a tool result
// the model reads either the text or the value.
func (p *Part) EstimatedTokens() int64 {
	n, files := len(p.Text), int64(0)
	switch {
	case p.Prune != nil:
		n = len(p.Prune.Breadcrumb)
	case p.Attachment != nil:
		return p.Attachment.EstimatedTokens()
	case p.Call != nil:
		n += len(p.Call.Name) + len(p.Call.Args)
	case p.Result != nil:
		n += max(len(p.Result.Output.Text), len(p.Result.Output.Value))
		files = p.Result.Output.AttachedTokens()
	}
	return int64(n+BytesPerToken-1)/BytesPerToken + files
}

// AttachedTokens returns about how many tokens the attachments of the output take.
func (o *ToolOutput) AttachedTokens() (n int64) {
	for i := range o.Attachments {
		n += o.Attachments[i].EstimatedTokens()
	}
	return n
}

// OriginKind says what added a message to history.
type OriginKind string

const (
	OriginTurnInput OriginKind = "turnInput" // an input of a person or a program
	OriginPlugin    OriginKind = "plugin"    // a plugin
	OriginProcess   OriginKind = "process"   // a wake
)

// Origin records where a message came from.
type Origin struct {
	Kind      OriginKind `json:"kind"`
	TurnID    TurnID     `json:"turnId,omitempty"`
	InputID   InputID    `json:"inputId,omitempty"`
	Plugin    string     `json:"plugin,omitempty"`
	Cause     *TurnCause `json:"cause,omitempty"`     // set if the message is a wake
	Transient bool       `json:"transient,omitempty"` // shown to the model once, never stored
}

// InputPart is one piece of an input: text or an attachment.
type InputPart struct {
	Type       InputType   `json:"type"`
	Text       string      `json:"text,omitempty"`
	Attachment *Attachment `json:"attachment,omitempty"`
}

// InputSize returns the size of text and attachments, in bytes.
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

// Message returns the message of an input that a turn uses: an event message for a wake, else a message of the user.
func (in *QueuedInput) Message(turn TurnID) Message {
	if in.Wake != nil {
		m := UserMessage(in.Input, &Origin{Kind: OriginProcess, TurnID: turn, InputID: in.ID, Cause: &in.Wake.Cause})
		m.Role = RoleEvent
		return m
	}
	return UserMessage(in.Input, &Origin{Kind: OriginTurnInput, TurnID: turn, InputID: in.ID})
}

// UserMessage returns the message that an input adds to the conversation.
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

// Cause returns the cause of a wake, or nil if the message is not a wake.
func (m *Message) Cause() *TurnCause {
	if m.Origin == nil {
		return nil
	}
	return m.Origin.Cause
}

// Text returns the joined text of all parts of one kind.
func (m *Message) Text(kind PartKind) string {
	var text strings.Builder
	for i := range m.Parts {
		if m.Parts[i].Kind == kind {
			text.WriteString(m.Parts[i].Text)
		}
	}
	return text.String()
}

// Answer returns the model's reply: its prose, or its commentary if there is no prose.
func (m *Message) Answer() string {
	if text := m.Text(PartProse); strings.TrimSpace(text) != "" {
		return text
	}
	return m.Text(PartCommentary)
}

// Calls returns the tool calls of the message, in the model's order.
func (m *Message) Calls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if p.Kind == PartToolCall {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}
