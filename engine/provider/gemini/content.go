package gemini

import (
	"bytes"
	"encoding/json"

	"lashd/engine/provider/encoding"
	"lashd/rpc/protocol"
)

// contentWriter writes messages as contents for one model.
// It belongs to one call and is not safe for concurrent use.
type contentWriter struct {
	model *protocol.ModelSpec // decides whether calls need a signature
	files *encoding.Files     // reads the contents of attachments
	route string              // of the call; signatures of other routes are left out
}

// append writes a message as one content of the API, followed by a comma, or as nothing if the API has nothing to show of it.
// The API knows the roles user and model only, so every role except assistant becomes user.
func (w *contentWriter) append(b []byte, m *protocol.Message) []byte {
	start := len(b)
	role := "user"
	if m.Role == protocol.RoleAssistant {
		role = "model"
	}
	b = encoding.Quote(append(b, `{"role":`...), role)
	b = append(b, `,"parts":[`...)
	empty := len(b)
	if m.Role == protocol.RoleAssistant {
		b = w.assistant(b, m)
	} else {
		b = w.user(b, m)
	}
	if len(b) == empty {
		return b[:start]
	}
	return append(bytes.TrimSuffix(b, []byte{','}), `]},`...)
}

// user writes the parts of results and then the other content.
// A comma follows each part; append removes the last one.
func (w *contentWriter) user(b []byte, m *protocol.Message) []byte {
	var beside []encoding.Content
	for i := range m.Parts {
		if m.Parts[i].Kind == protocol.PartToolResult {
			text, media := encoding.Result(&m.Parts[i], w.files)
			if !w.nestsFiles() {
				beside, media = append(beside, media...), nil
			}
			b = appendResult(b, m.Parts[i].Result, text, media)
		}
	}
	content := append(beside, encoding.Contents(m, w.files)...)
	for i := range content {
		b = appendPart(b, &content[i])
	}
	return b
}

// appendPart writes one part of a user's message.
// An image or document is sent as base64 data, or as a URL if it has no data.
func appendPart(b []byte, c *encoding.Content) []byte {
	switch {
	case c.Type == "":
		return append(encoding.Quote(append(b, `{"text":`...), c.Text), `},`...)
	case len(c.Data) == 0:
		b = encoding.Quote(append(b, `{"fileData":{"mimeType":`...), c.Type)
		return append(encoding.Quote(append(b, `,"fileUri":`...), c.URL), `}},`...)
	}
	b = encoding.Quote(append(b, `{"inlineData":{"mimeType":`...), c.Type)
	return append(encoding.Quote(append(b, `,"data":`...), c.Base64()), `}},`...)
}

// nestsFiles reports whether the model takes files inside of a result: models whose effort is a level do. For the others the files
// follow the results of the same message.
func (w *contentWriter) nestsFiles() bool { return w.effortIsLevel() }

// appendResult writes the result of a call with its files. The API takes an object, in which the member output or error is the result.
// It also takes the name of the function, which the other APIs do not need.
func appendResult(b []byte, result *protocol.ToolResult, text string, media []encoding.Content) []byte {
	key := "output" // the member for every status except a failure
	if result.Output.Status == protocol.OutputFailure {
		key = "error"
	}
	b = encoding.Quote(append(b, `{"functionResponse":{"id":`...), encoding.CallID(result.CallID))
	b = encoding.Quote(append(b, `,"name":`...), result.Name)
	b = encoding.Quote(append(b, `,"response":{`...), key)
	b = append(encoding.Quote(append(b, ':'), text), '}')
	if len(media) > 0 {
		b = append(b, `,"parts":[`...)
		for i := range media {
			b = appendPart(b, &media[i])
		}
		b = append(bytes.TrimSuffix(b, []byte{','}), ']')
	}
	return append(b, `}},`...)
}

// signature is the form of protocol.Part.Replay: what the server wants back with the part that it came with.
type signature struct {
	Signature string `json:"thoughtSignature"` // base64; lashd does not decode it
}

// noSignature stands for the signature of a call that another model made: Google's documentation names it for conversations that come
// from elsewhere. Models that check signatures reject a call without one.
const noSignature = "skip_thought_signature_validator"

// assistant writes the model's own parts in the order in which they came. Signatures go back only on the route that made them.
// The text of reasoning is not sent: its signature goes back on an empty text. Of several calls in one message, the server checks the
// first one.
func (w *contentWriter) assistant(b []byte, m *protocol.Message) []byte {
	calls := 0 // calls written so far
	for i := range m.Parts {
		part := &m.Parts[i]
		signed := w.signature(part)
		switch part.Kind {
		case protocol.PartReasoning:
			if signed != "" {
				b = appendText(b, "", signed)
			}
		case protocol.PartText, protocol.PartProse, protocol.PartCommentary, protocol.PartCode, protocol.PartOutput:
			if text := encoding.Shown(part, part.Text); text != "" || signed != "" {
				b = appendText(b, text, signed)
			}
		case protocol.PartToolCall:
			if calls++; calls == 1 && signed == "" && w.checksSignatures() {
				signed = noSignature
			}
			b = appendCall(b, part.Call, signed)
		}
	}
	return b
}

// checksSignatures reports whether the model may reject calls without a signature: models whose effort is a level do.
func (w *contentWriter) checksSignatures() bool { return w.effortIsLevel() }

// effortIsLevel reports whether the configuration of the model sends its effort as a level, which Gemini 3 introduced.
func (w *contentWriter) effortIsLevel() bool {
	return w.model.Reasoning != nil && w.model.Reasoning.Encoding != protocol.EncodeBudget
}

// signature returns the signature of a part, "" if it has none of this route.
// Replay state of any other form counts as none.
func (w *contentWriter) signature(part *protocol.Part) string {
	var s signature
	if part.Replay == nil || part.Route != w.route || json.Unmarshal(part.Replay, &s) != nil {
		return ""
	}
	return s.Signature
}

// appendText writes a text part. The text may be empty if the part is signed.
func appendText(b []byte, text, signed string) []byte {
	return appendSigned(encoding.Quote(append(b, `{"text":`...), text), signed)
}

// appendCall writes a tool call. Arguments that are not an object are sent as {}. The id pairs the call with its result.
func appendCall(b []byte, call *protocol.ToolCall, signed string) []byte {
	b = encoding.Quote(append(b, `{"functionCall":{"id":`...), encoding.CallID(call.CallID))
	b = encoding.Quote(append(b, `,"name":`...), call.Name)
	b = append(append(b, `,"args":`...), encoding.Object(call.Args)...)
	return appendSigned(append(b, '}'), signed)
}

// appendSigned ends a part, with its signature if it has one.
// signed is base64 text or "". A comma follows the part.
func appendSigned(b []byte, signed string) []byte {
	if signed != "" {
		b = encoding.Quote(append(b, `,"thoughtSignature":`...), signed)
	}
	return append(b, `},`...)
}
