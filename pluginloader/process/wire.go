package process

import (
	"encoding/json"
	"errors"
	"fmt"

	"lashd/internal/strictjson"
)

// message is a JSON-RPC message of a plugin. It is a request (ID and Method), a notification (only
// Method) or an answer (ID, and either Result or Error).
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *wireError      `json:"error,omitempty"`
}

// wireError is an error in either direction.
type wireError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message, cut to maxMessage.
func (e *wireError) Error() string {
	if len(e.Message) > maxMessage {
		return e.Message[:maxMessage] + "..."
	}
	return e.Message
}

// errShape means that a line is JSON but neither a request nor an answer.
var errShape = errors.New("is not a JSON-RPC message")

// parse decodes a line of a plugin. It rejects duplicate members, unknown members and nesting
// beyond depth, so that two readers of the line could not see different messages.
func parse(line []byte, depth int) (*message, error) {
	if err := strictjson.Check(line, strictjson.Limits{Depth: depth, Tokens: len(line) + 1}); err != nil {
		return nil, fmt.Errorf("is not a JSON-RPC message: %w", err)
	}
	m := &message{}
	if err := strictjson.DecodeChecked(line, m); err != nil {
		return nil, fmt.Errorf("is not a JSON-RPC message: %w", err)
	}
	request, answer := m.Method != "", m.Result != nil || m.Error != nil
	if m.JSONRPC != "2.0" || request == answer || m.Result != nil && m.Error != nil || answer && m.ID == nil {
		return nil, errShape
	}
	if string(m.Params) == "null" {
		m.Params = nil
	}
	return m, nil
}

// strict decodes a part of a message. Unknown, repeated or misspelled fields are errors: a plugin
// author should notice a mistake, not wonder why a field has no effect.
func strict(data []byte, into any) error {
	if len(data) == 0 {
		return errNothing
	}
	return strictjson.DecodeChecked(data, into)
}

// errNothing means that a required part of a message is absent.
var errNothing = errors.New("it is missing")

// request returns the line of a request, or of a notification if id is 0.
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

// response returns the line of an answer to the plugin.
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
		body, _ = json.Marshal(answer{"2.0", id, nil, &wireError{Code: codeInternal, Message: err.Error()}}) // plain types always encode
	}
	return append(body, '\n')
}
