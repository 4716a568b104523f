// Package provider says what a model is: a Provider streams one reply to one Request. The adapters below this package
// speak each vendor's wire; the decorators here retry, bound and record. Providers are safe for concurrent use.
package provider

import (
	"context"
	"encoding/json"
	"iter"

	"lashd/rpc/protocol"
)

// Provider streams one model reply. The sequence ends with an error (an *Error where the cause is known) or with a
// Chunk whose Stop is set; ending without either is an error of the adapter. Cancelling ctx ends the stream soon.
// An adapter never retries: Retry does.
type Provider interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// Request is one model call, in no vendor's words.
type Request struct {
	Model    protocol.ModelSpec  // with the effort and the limits to use
	System   string              // the system prompt; "": none
	Messages []*protocol.Message // immutable; the same pointers come again in the next call, so encodings can be kept
	Tools    []protocol.ToolManifest
	Choice   ToolChoice // "" means ToolsAuto
	Options  protocol.GenerationOptions
	Output   OutputSpec
	Scope    Scope
	// Contents reads an attachment that has only a digest; nil contents do not exist. A nil function: no attachment has a digest.
	Contents func(protocol.Digest) ([]byte, error) `json:"-"`
	DenyURLs bool                                  `json:"-"` // send a note in place of an attachment by URL, wherever it came from
}

// ToolChoice says whether the model may, must or must not call tools.
type ToolChoice string

const (
	ToolsAuto     ToolChoice = "auto"
	ToolsNone     ToolChoice = "none"
	ToolsRequired ToolChoice = "required"
)

// OutputSpec asks for text (the zero value), for any JSON object, or for JSON of a schema.
type OutputSpec struct {
	JSON   bool            `json:"json,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// Scope says for whom a call is made. RequestID is the same for each attempt of one call; Attempt counts them from 1,
// and is 0 where nothing retries.
type Scope struct {
	SessionID protocol.SessionID
	RequestID string
	Attempt   int
}

// Chunk is one piece of a reply. Text and Reasoning are deltas; Part is a completed part that has no deltas, such as a
// tool call with its arguments whole; the rest is news about the call. Stop is set on the last chunk of a reply, and
// only when the vendor's own evidence of a complete reply was seen.
type Chunk struct {
	Text       string
	Commentary string // text that the endpoint marks as not yet the answer
	Reasoning  string
	Code       string // of a code cell, with its tags; only lashd sets it, from Text
	Part       *protocol.Part
	Usage      *protocol.Usage
	Evidence   *protocol.CallEvidence // what the server reported about the call
	Options    []protocol.OptionReceipt
	Stop       protocol.StopReason
	Replay     json.RawMessage // of the reasoning that came before, for the same route only
	Route      string          // that Replay belongs to

	Retry   *protocol.RetryStatus // another attempt follows after a wait
	Reset   bool                  // what was streamed so far is withdrawn; the reply starts again
	Attempt *protocol.CallAttempt // an attempt ended
}
