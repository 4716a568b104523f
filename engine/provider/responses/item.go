package responses

import (
	"cmp"

	"lashd/engine/provider/encoding"
	"lashd/rpc/protocol"
)

// itemWriter writes messages as input items for one model.
// It belongs to one call and is not safe for concurrent use.
type itemWriter struct {
	files *encoding.Files // reads the contents of attachments
	route string          // of the call; replay state of other routes is left out
}

// append writes a message as none, one or several items, each followed by a comma.
// Tool results are items of their own and come before the message. The role system becomes developer, and event becomes user.
func (w *itemWriter) append(b []byte, m *protocol.Message) []byte {
	if m.Role == protocol.RoleAssistant {
		return w.assistant(b, m)
	}
	for i := range m.Parts {
		if m.Parts[i].Kind == protocol.PartToolResult {
			b = w.appendResult(b, &m.Parts[i])
		}
	}
	content := encoding.Contents(m, w.files)
	if len(content) == 0 {
		return b
	}
	role := "user"
	if m.Role == protocol.RoleSystem {
		role = "developer"
	}
	b = encoding.Quote(append(b, `{"type":"message","role":`...), role)
	b = append(b, `,"content":[`...)
	for i := range content {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendContent(b, &content[i])
	}
	return append(b, `]},`...)
}

// appendContent writes one block of a user's message.
// Unlike items, a block is not followed by a comma. An image or document is sent as a data URL, or as its URL if it has no data.
// The API requires a file name with the data of a document.
func appendContent(b []byte, c *encoding.Content) []byte {
	switch {
	case c.Image():
		b = append(b, `{"type":"input_image","detail":"auto","image_url":`...)
		return append(encoding.Quote(b, c.DataURL()), '}')
	case c.Document() && len(c.Data) == 0:
		return append(encoding.Quote(append(b, `{"type":"input_file","file_url":`...), c.URL), '}')
	case c.Document():
		b = encoding.Quote(append(b, `{"type":"input_file","filename":`...), cmp.Or(c.Name, "document.pdf"))
		return append(encoding.Quote(append(b, `,"file_data":`...), c.DataURL()), '}')
	}
	return append(encoding.Quote(append(b, `{"type":"input_text","text":`...), c.Text), '}')
}

// appendResult writes the result of a call.
// The API has no member for failures: the text of the result says so. Files make the output a list of blocks.
func (w *itemWriter) appendResult(b []byte, part *protocol.Part) []byte {
	b = encoding.Quote(append(b, `{"type":"function_call_output","call_id":`...), encoding.CallID(part.Result.CallID))
	b = append(b, `,"output":`...)
	text, media := encoding.Result(part, w.files)
	if len(media) == 0 {
		return append(encoding.Quote(b, text), `},`...)
	}
	b = append(b, '[')
	if text != "" {
		b = append(appendContent(b, &encoding.Content{Text: text}), ',')
	}
	for i := range media {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendContent(b, &media[i])
	}
	return append(b, `]},`...)
}

// assistant writes the model's own items in the order in which they came. Reasoning goes back only on the route that made it, and only
// with an item after it, as the API requires.
func (w *itemWriter) assistant(b []byte, m *protocol.Message) []byte {
	complete := len(b) // end of the last item that is not reasoning
	for i := range m.Parts {
		part := &m.Parts[i]
		switch part.Kind {
		case protocol.PartReasoning:
			if part.Replay != nil && part.Route == w.route {
				b = append(append(b, part.Replay...), ',')
			}
			continue
		case protocol.PartText, protocol.PartProse, protocol.PartCommentary, protocol.PartCode, protocol.PartOutput:
			text := encoding.Shown(part, part.Text)
			if text == "" {
				continue
			}
			b = appendMessage(b, text, part.Kind == protocol.PartCommentary)
		case protocol.PartToolCall:
			b = appendCall(b, part.Call)
		default:
			continue
		}
		complete = len(b)
	}
	return b[:complete]
}

// appendMessage writes a message of the model.
// phase keeps commentary apart from answers; the API wants it back.
func appendMessage(b []byte, text string, commentary bool) []byte {
	b = append(b, `{"type":"message","role":"assistant","content":`...)
	b = encoding.Quote(b, text)
	if commentary {
		b = append(b, `,"phase":"commentary"`...)
	}
	return append(b, `},`...)
}

// appendCall writes a tool call. Arguments that are not an object are sent as {}.
func appendCall(b []byte, call *protocol.ToolCall) []byte {
	b = encoding.Quote(append(b, `{"type":"function_call","call_id":`...), encoding.CallID(call.CallID))
	b = encoding.Quote(append(b, `,"name":`...), call.Name)
	return append(encoding.Quote(append(b, `,"arguments":`...), encoding.Object(call.Args)), `},`...)
}
