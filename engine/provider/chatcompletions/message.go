package chatcompletions

import (
	"cmp"
	"encoding/json"
	"strings"

	"lashd/engine/provider/encoding"
	"lashd/rpc/protocol"
)

// messageEncoder writes messages for one model.
// It belongs to one call and is not safe for concurrent use.
type messageEncoder struct {
	route string          // of the call; replay state of other routes is left out
	files *encoding.Files // reads the contents of attachments
}

// append writes a message as none, one or several messages of the API, each followed by a comma.
// Each tool result is a message of its own and comes before the others. The role event becomes user. The API takes only text in
// results, so their files follow in a message of the user.
func (e *messageEncoder) append(b []byte, m *protocol.Message) []byte {
	if m.Role == protocol.RoleAssistant {
		return appendAssistant(b, m, e.route)
	}
	var content []encoding.Content
	for i := range m.Parts {
		if m.Parts[i].Kind == protocol.PartToolResult {
			text, media := encoding.Result(&m.Parts[i], e.files)
			b = appendResult(b, m.Parts[i].Result, text)
			content = append(content, captioned(m.Parts[i].Result, media)...)
		}
	}
	content = append(content, encoding.Contents(m, e.files)...)
	if len(content) == 0 {
		return b
	}
	role := protocol.RoleUser
	if m.Role == protocol.RoleSystem {
		role = protocol.RoleSystem
	}
	b = encoding.Quote(append(b, `{"role":`...), string(role))
	b = append(b, `,"content":`...)
	return append(appendContent(b, content), `},`...)
}

// appendContent writes plain text where there is nothing else: not all servers know lists of parts.
// A line end separates the texts.
func appendContent(b []byte, content []encoding.Content) []byte {
	if text, all := encoding.Texts(content); all {
		return encoding.Quote(b, text)
	}
	b = append(b, '[')
	for i := range content {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendBlock(b, &content[i])
	}
	return append(b, ']')
}

// appendBlock writes one block of a message.
// No comma follows it. An image is sent as a data URL, or as its URL if it has no data; the API requires a file name with a document.
func appendBlock(b []byte, c *encoding.Content) []byte {
	switch {
	case c.Image():
		b = append(b, `{"type":"image_url","image_url":{"url":`...)
		return append(encoding.Quote(b, c.DataURL()), `}}`...)
	case c.Document():
		b = append(b, `{"type":"file","file":{"filename":`...)
		b = encoding.Quote(b, cmp.Or(c.Name, "document.pdf"))
		b = append(b, `,"file_data":`...)
		return append(encoding.Quote(b, c.DataURL()), `}}`...)
	}
	return append(encoding.Quote(append(b, `{"type":"text","text":`...), c.Text), '}')
}

// replay is the form of protocol.Part.Replay: reasoning that the server requires back.
// It is not shown to people; the reasoning is also a part of the reply.
type replay struct {
	Reasoning string `json:"reasoning"`
}

// appendAssistant writes a reply of the model as one message, or as nothing if it has neither text nor calls. Its parts lose their order:
// the API has one text and one list of calls. Servers require a content member, so a message with calls alone has null.
func appendAssistant(b []byte, m *protocol.Message, route string) []byte {
	var texts, thoughts []string
	calls := m.Calls()
	for i := range m.Parts {
		part := &m.Parts[i]
		switch part.Kind {
		case protocol.PartText, protocol.PartProse, protocol.PartCommentary, protocol.PartCode, protocol.PartOutput:
			if text := encoding.Shown(part, part.Text); text != "" {
				texts = append(texts, text)
			}
		}
		if part.Replay != nil && part.Route == route {
			var r replay
			if json.Unmarshal(part.Replay, &r) == nil && r.Reasoning != "" {
				thoughts = append(thoughts, r.Reasoning)
			}
		}
	}
	if len(texts) == 0 && len(calls) == 0 {
		return b
	}
	b = append(b, `{"role":"assistant","content":`...)
	if len(texts) == 0 {
		b = append(b, "null"...)
	} else {
		b = encoding.Quote(b, joinLines(texts))
	}
	if len(thoughts) > 0 {
		b = encoding.Quote(append(b, `,"reasoning_content":`...), strings.Join(thoughts, "\n"))
	}
	return append(appendCalls(b, calls), `},`...)
}

// joinLines joins the texts of a reply, each on a line of its own. A text that ends its line, such as prose before a code
// cell, gets no empty line after it.
func joinLines(texts []string) string {
	var all strings.Builder
	for i, text := range texts {
		if i > 0 && !strings.HasSuffix(texts[i-1], "\n") {
			all.WriteByte('\n')
		}
		all.WriteString(text)
	}
	return all.String()
}

// appendCalls writes a reply's tool calls, which begin with a comma, or nothing without calls. Arguments are JSON in a string. Those
// that are not an object are sent as {}.
func appendCalls(b []byte, calls []protocol.ToolCall) []byte {
	if len(calls) == 0 {
		return b
	}
	b = append(b, `,"tool_calls":[`...)
	for i, c := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = encoding.Quote(append(b, `{"id":`...), encoding.ChatCallID(c.CallID))
		b = encoding.Quote(append(b, `,"type":"function","function":{"name":`...), c.Name)
		b = append(encoding.Quote(append(b, `,"arguments":`...), encoding.Object(c.Args)), `}}`...)
	}
	return append(b, ']')
}

// appendResult writes the result of a call. The API has no member for failures: the text of the result says so.
func appendResult(b []byte, result *protocol.ToolResult, text string) []byte {
	b = encoding.Quote(append(b, `{"role":"tool","tool_call_id":`...), encoding.ChatCallID(result.CallID))
	return append(encoding.Quote(append(b, `,"content":`...), text), `},`...)
}

// captioned returns the files of a result after a text that says which call they belong to; nothing without files.
func captioned(result *protocol.ToolResult, media []encoding.Content) []encoding.Content {
	if len(media) == 0 {
		return nil
	}
	caption := "[files of the result of " + result.Name + ", call " + encoding.ChatCallID(result.CallID) + "]"
	return append([]encoding.Content{{Text: caption}}, media...)
}
