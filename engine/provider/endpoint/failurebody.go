package endpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// Failure is the error object of an API, in any of the forms that servers send.
type Failure struct {
	Message string  `json:"message"` // for people; may quote the request
	Type    scalar  `json:"type"`    // Anthropic, OpenAI
	Code    scalar  `json:"code"`    // a word or an HTTP status
	Status  scalar  `json:"status"`  // Google: a word
	Details details `json:"details"` // Google
}

// details are Google's error details. Anything else under that name is ignored.
type details []detail

// UnmarshalJSON implements json.Unmarshaler.
func (d *details) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*[]detail)(d)) != nil {
		*d = nil
	}
	return nil
}

// detail is one of Google's error details. Other fields are ignored.
type detail struct {
	Reason string `json:"reason"`     // such as API_KEY_INVALID
	Delay  string `json:"retryDelay"` // such as "17s"
}

// UnmarshalJSON implements json.Unmarshaler: some servers send only a text.
func (f *Failure) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Message)
	}
	type object Failure
	if err := json.Unmarshal(data, (*object)(f)); err != nil {
		*f = Failure{Message: string(data)}
	}
	return nil
}

// words returns the stable words of the failure, the most specific first.
func (f *Failure) words() []scalar {
	var words []scalar
	for _, d := range f.Details {
		if d.Reason != "" {
			words = append(words, scalar(d.Reason))
		}
	}
	return append(words, f.Code, f.Type, f.Status)
}

// delay returns the wait that the details ask for, 0 if none does.
// Google's API sends it in the details of the error. It is at most maxWait.
func (f *Failure) delay() time.Duration {
	for _, d := range f.Details {
		if wait, err := time.ParseDuration(d.Delay); err == nil && wait > 0 {
			return min(wait, maxWait)
		}
	}
	return 0
}

// scalar is a text that some servers send as a number.
type scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scalar) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(s))
	}
	if !bytes.Equal(data, []byte("null")) {
		*s = scalar(data)
	}
	return nil
}

// parseFailure reads the body of a rejection: {"error": {...}}, {"error": "..."}, the object itself, {"detail": ...}, a
// list of one of these, or just text.
func parseFailure(data []byte) Failure {
	if f, found := findFailure(data); found {
		return f
	}
	data = unlisted(data)
	var plain Failure
	if !json.Valid(data) || json.Unmarshal(data, &plain) != nil {
		line, _, _ := strings.Cut(string(data), "\n")
		return Failure{Message: line}
	}
	return plain
}

// unlisted returns the only element of a list, or data if it is not a list.
// Some of Google's errors are in a list.
func unlisted(data []byte) []byte {
	data = bytes.TrimSpace(data)
	if inner, ok := bytes.CutPrefix(data, []byte("[")); ok {
		data = bytes.TrimSpace(bytes.TrimSuffix(inner, []byte("]")))
	}
	return data
}

// findFailure reads the error of an answer and reports whether it has one.
func findFailure(data []byte) (Failure, bool) {
	data = unlisted(data)
	var outer struct {
		Error  *Failure        `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(data, &outer) != nil {
		return Failure{}, false
	}
	if outer.Error != nil {
		return *outer.Error, true
	}
	if outer.Detail == nil {
		return Failure{}, false
	}
	var plain Failure
	if json.Unmarshal(data, &plain) != nil {
		return Failure{}, false
	}
	plain.Message = cmp.Or(plain.Message, strings.Trim(string(outer.Detail), `"`))
	return plain, true
}

// firstLine returns the first line of a text, at most 200 characters of it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > 200 {
		return string(runes[:200])
	}
	return line
}

// NewFailure returns a failure that an API reports outside of an error object.
func NewFailure(code, message string) *Failure {
	return &Failure{Code: scalar(code), Message: message}
}
