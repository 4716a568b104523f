package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// message is a JSON-RPC message of a plugin.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *wireError      `json:"error"`
}

// wireError is an error on the wire, in both directions.
type wireError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *wireError) Error() string {
	if len(e.Message) > maxMessage {
		return e.Message[:maxMessage] + "..."
	}
	return e.Message
}

var (
	errUTF8  = errors.New("is not UTF-8")
	errDeep  = errors.New("is nested too deeply")
	errTwo   = errors.New("is more than one value")
	errShape = errors.New("is no JSON-RPC message")
)

// parse reads a line of a plugin.
func parse(line []byte, depth int) (*message, error) {
	if !utf8.Valid(line) {
		return nil, errUTF8
	}
	if deeper(line, depth) {
		return nil, errDeep
	}
	m := &message{}
	if err := json.Unmarshal(line, m); err != nil { // which needs less than strict does; what is inside is looked at later
		return nil, err
	}
	request, answer := m.Method != "", m.Result != nil || m.Error != nil
	if m.JSONRPC != "2.0" || request == answer || m.Result != nil && m.Error != nil || answer && m.ID == nil {
		return nil, errShape
	}
	return m, nil
}

// strict decodes one JSON value that has only known fields.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errTwo
	}
	return nil
}

// deeper tells whether arrays and objects are more than limit deep.
func deeper(data []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// request is a line that asks; without an id it only tells.
func request(id int64, method string, params any) ([]byte, error) {
	body, err := json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      int64  `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", id, method, params})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return append(body, '\n'), nil
}

// response is a line that answers a plugin.
func response(id json.RawMessage, result any, failed *wireError) []byte {
	type answer struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result,omitempty"`
		Error   *wireError      `json:"error,omitempty"`
	}
	if failed == nil && result == nil {
		result = struct{}{}
	}
	body, err := json.Marshal(answer{"2.0", id, result, failed})
	if err != nil {
		body, _ = json.Marshal(answer{"2.0", id, nil, &wireError{Code: codeInternal, Message: err.Error()}}) // of plain types
	}
	return append(body, '\n')
}
