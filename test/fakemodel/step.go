package fakemodel

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Step is one scripted reply. The zero Step is an empty answer that ends well.
type Step struct {
	When When `json:"when,omitzero"` // which request may take it

	// A Status other than 0 and 200 refuses the request; the rest but Parts is then unused.
	// Parts that wait still do, before the refusal.
	Status     int    `json:"status,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"` // header value, used unchanged
	Body       string `json:"body,omitempty"`       // default: an error object of the API
	Echo       bool   `json:"echo,omitempty"`       // the default body quotes the URL and all headers, keys too

	Parts []Part `json:"parts,omitempty"`
	// Finish is a finish_reason of Chat Completions, for which other APIs have their own words; default "stop", or "tool_calls"
	// after calls.
	Finish string `json:"finish,omitempty"`
	Usage  *Usage `json:"usage,omitempty"` // default: estimated
	End    End    `json:"end,omitempty"`
}

// Part is one thing that happens during a reply. Exactly one field is set, beside Signature.
type Part struct {
	Text      string `json:"text,omitempty"`      // a text delta
	Reasoning string `json:"reasoning,omitempty"` // a delta of reasoning
	// Signature signs the Reasoning that it ends, in APIs that sign reasoning. The default is unique to the server.
	Signature string `json:"signature,omitempty"`
	// Calls are tool calls whose argument pieces alternate on the wire. Calls
	// in separate parts follow each other; indexes go on counting.
	Calls   []Call `json:"calls,omitempty"`
	PauseMS int    `json:"pauseMs,omitempty"`
	Stall   bool   `json:"stall,omitempty"` // wait until Release or until the client disconnects; before any output, no headers are sent
	// Raw is written as an SSE event as it is: "data: {oops", ": comment". A
	// reply that is not streamed has it as its whole body.
	Raw string `json:"raw,omitempty"`
	// Error is the message of an error event, with which a streamed reply ends.
	Error string `json:"error,omitempty"`
}

// Call is a tool call of the model.
type Call struct {
	ID     string `json:"id,omitempty"` // default: unique to the server; none in Gemini
	Name   string `json:"name"`
	Args   string `json:"args"`             // JSON, or deliberately not
	Pieces int    `json:"pieces,omitempty"` // chunks that carry the arguments; default 2

	numbered bool // ID is the default
}

// Usage has the names of Chat Completions.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"` // default: the sum

	PromptDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details,omitzero"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details,omitzero"`
}

// End is how a reply ends.
type End string

// The ways a reply ends. Each but Whole comes after all parts.
const (
	Whole  End = ""
	Cut    End = "cut"    // clean end of file, without the API's sign of a complete reply
	Reset  End = "reset"  // connection reset
	NoDone End = "noDone" // complete, but the [DONE] of Chat Completions is missing
)

// When says which requests a step is for; the zero When fits all.
type When struct {
	User    string `json:"user,omitempty"`    // part of the last user message
	Results *int   `json:"results,omitempty"` // tool results after the last user message
}

func (w When) fits(t tail) bool {
	return strings.Contains(t.User, w.User) && (w.Results == nil || *w.Results == t.Results)
}

// String implements fmt.Stringer.
func (w When) String() string {
	switch {
	case w.Results != nil && w.User != "":
		return fmt.Sprintf("user %q and %d tool results", w.User, *w.Results)
	case w.Results != nil:
		return fmt.Sprintf("%d tool results", *w.Results)
	case w.User != "":
		return fmt.Sprintf("user %q", w.User)
	}
	return "any request"
}

// Say is a step that answers with text deltas.
func Say(deltas ...string) Step {
	var st Step
	for _, d := range deltas {
		st.Parts = append(st.Parts, Part{Text: d})
	}
	return st
}

// Use is a step that calls tools.
func Use(calls ...Call) Step { return Step{Parts: []Part{{Calls: calls}}} }

// Fail is a step that refuses the request with an HTTP status.
func Fail(status int) Step { return Step{Status: status} }

// ReadSteps decodes a JSON array of steps. Unknown fields are errors.
func ReadSteps(r io.Reader) ([]Step, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var steps []Step
	if err := dec.Decode(&steps); err != nil {
		return nil, fmt.Errorf("fakemodel: read steps: %w", err)
	}
	for i, st := range steps {
		switch st.End {
		case Whole, Cut, Reset, NoDone:
		default:
			return nil, fmt.Errorf("fakemodel: read steps: step %d: unknown end %q", i, st.End)
		}
	}
	return steps, nil
}
