package anthropic

import (
	"bytes"
	"strings"

	"lashd/engine/provider/encoding"
	"lashd/rpc/protocol"
)

// messageWriter writes messages for one model.
// It belongs to one call and is not safe for concurrent use.
type messageWriter struct {
	files *encoding.Files // reads the contents of attachments
	route string          // of the call; replay state of other routes is left out
	mark  string          // member that ends a cached prefix; "" for none
}

// plain writes a message as one of the API, followed by a comma, or as nothing if the API has nothing to show of it.
func (w *messageWriter) plain(b []byte, m *protocol.Message) []byte { return w.write(b, m, "") }

// marked is plain for the last message of a cached prefix.
func (w *messageWriter) marked(b []byte, m *protocol.Message) []byte { return w.write(b, m, w.mark) }

// write writes a message whose last block carries mark.
// Every role except assistant becomes user. user and assistant must end each block with a brace and a comma: the mark is inserted
// before the last brace.
func (w *messageWriter) write(b []byte, m *protocol.Message, mark string) []byte {
	start := len(b)
	role := "user"
	if m.Role == protocol.RoleAssistant {
		role = "assistant"
	}
	b = encoding.Quote(append(b, `{"role":`...), role)
	b = append(b, `,"content":[`...)
	empty := len(b)
	if m.Role == protocol.RoleAssistant {
		b = w.assistant(b, m)
	} else {
		b = w.user(b, m)
	}
	if len(b) == empty {
		return b[:start]
	}
	b = bytes.TrimSuffix(b, []byte(`},`))
	b = append(b, mark...)
	return append(b, `}]},`...)
}

// user writes the blocks of results, which must come first, and then the other content.
func (w *messageWriter) user(b []byte, m *protocol.Message) []byte {
	for i := range m.Parts {
		if m.Parts[i].Kind == protocol.PartToolResult {
			b = w.appendResult(b, &m.Parts[i])
		}
	}
	content := encoding.Contents(m, w.files)
	for i := range content {
		b = appendBlock(b, &content[i])
	}
	return b
}

// appendBlock writes one block of content. The API rejects blank texts.
// An image or document is sent as base64, or as a URL if it has no data. A comma follows each block.
func appendBlock(b []byte, c *encoding.Content) []byte {
	kind := "document"
	switch {
	case c.Image():
		kind = "image"
	case !c.Document():
		if strings.TrimSpace(c.Text) == "" {
			return b
		}
		return append(encoding.Quote(append(b, `{"type":"text","text":`...), c.Text), `},`...)
	}
	b = encoding.Quote(append(b, `{"type":`...), kind)
	if len(c.Data) == 0 {
		b = encoding.Quote(append(b, `,"source":{"type":"url","url":`...), c.URL)
		return append(b, `}},`...)
	}
	b = encoding.Quote(append(b, `,"source":{"type":"base64","media_type":`...), c.Type)
	b = encoding.Quote(append(b, `,"data":`...), c.Base64())
	return append(b, `}},`...)
}

// appendResult writes the result of a call.
// is_error tells the model that the call failed. A result without text and files has no content member. Files make the content
// a list of blocks; a plain text stays one string.
func (w *messageWriter) appendResult(b []byte, part *protocol.Part) []byte {
	b = encoding.Quote(append(b, `{"type":"tool_result","tool_use_id":`...), encoding.CallID(part.Result.CallID))
	switch text, media := encoding.Result(part, w.files); {
	case len(media) > 0:
		b = appendBlock(append(b, `,"content":[`...), &encoding.Content{Text: text})
		for i := range media {
			b = appendBlock(b, &media[i])
		}
		b = append(bytes.TrimSuffix(b, []byte{','}), ']')
	case text != "":
		b = encoding.Quote(append(b, `,"content":`...), text)
	}
	if part.Result.Output.Status == protocol.OutputFailure {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, `},`...)
}

// assistant writes the model's own blocks in the order in which they came. Thinking goes back only on the route that made it, and only
// with something after it, as the API requires.
func (w *messageWriter) assistant(b []byte, m *protocol.Message) []byte {
	complete := len(b) // end of the last block that is not thinking
	for i := range m.Parts {
		part := &m.Parts[i]
		switch part.Kind {
		case protocol.PartReasoning:
			if part.Replay != nil && part.Route == w.route {
				b = append(append(b, part.Replay...), ',')
			}
			continue
		case protocol.PartText, protocol.PartProse, protocol.PartCommentary, protocol.PartCode, protocol.PartOutput:
			b = appendBlock(b, &encoding.Content{Text: encoding.Shown(part, part.Text)})
		case protocol.PartToolCall:
			b = appendCall(b, part.Call)
		default:
			continue
		}
		complete = len(b)
	}
	return b[:complete]
}

// appendCall writes a tool call. Arguments that are not an object are sent as {}, because the API rejects them.
func appendCall(b []byte, call *protocol.ToolCall) []byte {
	b = encoding.Quote(append(b, `{"type":"tool_use","id":`...), encoding.CallID(call.CallID))
	b = encoding.Quote(append(b, `,"name":`...), call.Name)
	b = append(append(b, `,"input":`...), encoding.Object(call.Args)...)
	return append(b, `},`...)
}
