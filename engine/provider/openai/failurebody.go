package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// failureBody is the error object, in any of the forms that servers give it.
type failureBody struct {
	Message string `json:"message"`
	Type    scalar `json:"type"`
	Code    scalar `json:"code"`
}

// UnmarshalJSON implements json.Unmarshaler: some servers give only a text.
func (f *failureBody) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Message)
	}
	type object failureBody
	if err := json.Unmarshal(data, (*object)(f)); err != nil {
		f.Message = string(data)
	}
	return nil
}

// scalar is a text that some servers give as a number.
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

// parseFailure reads the body of a refusal: {"error": {...}}, {"error": "..."}, the object itself, {"detail": ...}, a
// list of one of these, or just text.
func parseFailure(data []byte) failureBody {
	data = bytes.TrimSpace(data)
	if inner, ok := bytes.CutPrefix(data, []byte("[")); ok {
		data = bytes.TrimSuffix(inner, []byte("]"))
	}
	var outer struct {
		Error  *failureBody    `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	var plain failureBody
	if json.Unmarshal(data, &outer) != nil || json.Unmarshal(data, &plain) != nil {
		line, _, _ := strings.Cut(string(data), "\n")
		return failureBody{Message: line}
	}
	if outer.Error != nil {
		return *outer.Error
	}
	plain.Message = cmp.Or(plain.Message, strings.Trim(string(outer.Detail), `"`))
	return plain
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > 200 {
		return string(runes[:200])
	}
	return line
}
