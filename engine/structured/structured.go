// Package structured checks that the reply of a model is a value of a JSON Schema. Turns and single completions use it. Its functions
// are pure, and safe for concurrent use.
package structured

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// mostProblem is the length of the longest problem, in bytes. The validator quotes values of the reply, which can be long.
const mostProblem = 1000

// ErrTooLarge means that a schema exceeds protocol.MaxSchema.
var ErrTooLarge = fmt.Errorf("has more than %d bytes", protocol.MaxSchema)

// Schema returns the compact form of a schema that a client sent, or nil if it sent none. It fails for everything that is not an
// object with a valid JSON Schema of at most protocol.MaxSchema bytes. The error continues a sentence that begins with the schema.
func Schema(raw json.RawMessage) (json.RawMessage, error) {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return nil, nil
	case len(raw) > protocol.MaxSchema:
		return nil, ErrTooLarge
	case len(trimmed) == 0 || trimmed[0] != '{':
		return nil, errors.New("must be a JSON Schema, which is an object")
	}
	if err := strictjson.Check(raw, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("is not valid JSON: %w", err)
	}
	if err := tool.CheckSchema(raw); err != nil {
		return nil, fmt.Errorf("is not a valid JSON Schema: %s", strings.TrimPrefix(err.Error(), "schema: "))
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, raw)
	return compact.Bytes(), err
}

// System returns a system prompt that also asks for a value of the schema, or the unchanged prompt without a schema. A model gets this
// text even if its API enforces schemas, because not every API does, and because the model plans its work by it.
func System(prompt string, schema json.RawMessage) string {
	if len(schema) == 0 {
		return prompt
	}
	if prompt != "" {
		prompt += "\n\n"
	}
	return prompt + "# Format of the answer\n\nEnd with one JSON value that matches the JSON Schema below. Your final reply contains only this value: " +
		"no other text and no code fence. A program reads it.\n\n" + string(schema)
}

// Of returns the value in a complete reply to a call that asked for one, or the problem if the reply is not such a value. It returns
// neither if the call asked for none, if the reply has tool calls, or if it stopped early: such a reply ends no turn with a value.
func Of(asked provider.OutputSpec, reply *provider.Reply) (value json.RawMessage, problem string) {
	msg := reply.Message()
	complete := slices.Contains([]protocol.StopReason{protocol.StopEnd, protocol.StopToolUse, protocol.StopUnknown}, reply.Stop)
	if len(asked.Schema) == 0 || !complete || len(msg.Calls()) > 0 {
		return nil, ""
	}
	value, err := Value(asked.Schema, msg.Answer())
	if err != nil {
		return nil, err.Error()
	}
	return value, ""
}

// Value returns the value in a reply, in compact form. The reply is JSON, or a single fenced code block of JSON, which many models
// write whatever the prompt says. The error says in one short text why the reply is not a value of the schema.
func Value(schema json.RawMessage, reply string) (json.RawMessage, error) {
	text := unfenced(strings.TrimSpace(reply))
	if text == "" {
		return nil, errors.New("the reply is empty")
	}
	if err := strictjson.Check([]byte(text), strictjson.Limits{}); err != nil {
		return nil, problem("the reply is not JSON: " + err.Error())
	}
	if err := tool.Checker(schema)(json.RawMessage(text)); err != nil {
		return nil, problem(err.Error())
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, []byte(text))
	return compact.Bytes(), err
}

// unfenced returns the contents of a text that is one fenced code block, and any other text unchanged.
func unfenced(text string) string {
	inner, opened := strings.CutPrefix(text, "```")
	inner, closed := strings.CutSuffix(inner, "```")
	language, code, several := strings.Cut(inner, "\n")
	language = strings.TrimSpace(language)
	if !opened || !closed || !several || language != "" && !strings.EqualFold(language, "json") {
		return text
	}
	return strings.TrimSpace(code)
}

// problem returns an error with valid text of at most mostProblem bytes.
func problem(text string) error {
	if len(text) > mostProblem {
		text = strings.ToValidUTF8(text[:mostProblem], "") + " …"
	}
	return errors.New(text)
}
