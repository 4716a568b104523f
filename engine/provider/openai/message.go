package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"lashd/rpc/protocol"
)

// appendMessage writes a message as none, one or several messages of the API, each followed by a comma.
func appendMessage(b []byte, m *protocol.Message, route string) []byte {
	if m.Role == protocol.RoleAssistant {
		return appendAssistant(b, m, route)
	}
	for i := range m.Parts {
		if m.Parts[i].Kind == protocol.PartToolResult {
			b = appendResult(b, &m.Parts[i])
		}
	}
	content := contentOf(m)
	if len(content) == 0 {
		return b
	}
	role := protocol.RoleUser
	if m.Role == protocol.RoleSystem {
		role = protocol.RoleSystem
	}
	b = quote(append(b, `{"role":`...), string(role))
	b = append(b, `,"content":`...)
	return append(appendContent(b, content), `},`...)
}

// piece is a part of a user's message: a text, or the URL of an image.
type piece struct{ text, image string }

func contentOf(m *protocol.Message) []piece {
	var content []piece
	for i := range m.Parts {
		part := &m.Parts[i]
		switch part.Kind {
		case protocol.PartToolResult, protocol.PartReasoning, protocol.PartToolCall, protocol.PartError:
			continue
		case protocol.PartAttachment:
			content = append(content, attached(part))
		default:
			if text := shown(part, part.Text); text != "" {
				content = append(content, piece{text: text})
			}
		}
	}
	return content
}

// attached shows images to the model, gives it files of text as text, and names the rest.
func attached(part *protocol.Part) piece {
	a := part.Attachment
	name := "[attachment"
	if a.Name != "" {
		name += " " + a.Name
	}
	switch {
	case part.Prune != nil:
		return piece{text: shown(part, "")}
	case strings.HasPrefix(a.Type, "image/") && len(a.Data) > 0:
		return piece{image: "data:" + a.Type + ";base64," + base64.StdEncoding.EncodeToString(a.Data)}
	case strings.HasPrefix(a.Type, "image/") && a.URL != "":
		return piece{image: a.URL}
	case strings.HasPrefix(a.Type, "text/") && len(a.Data) > 0:
		return piece{text: name + "]\n" + string(a.Data)}
	case strings.HasPrefix(a.Type, "text/") && a.Digest == "" && a.URL == "":
		return piece{text: name + ", which is empty]"}
	}
	return piece{text: name + ", " + a.Type + ": this model cannot see it]"}
}

// appendContent writes plain text where there is nothing else: not all servers know lists of parts.
func appendContent(b []byte, content []piece) []byte {
	texts := make([]string, 0, len(content))
	for _, p := range content {
		if p.image == "" {
			texts = append(texts, p.text)
		}
	}
	if len(texts) == len(content) {
		return quote(b, strings.Join(texts, "\n"))
	}
	b = append(b, '[')
	for i, p := range content {
		if i > 0 {
			b = append(b, ',')
		}
		if p.image == "" {
			b = append(quote(append(b, `{"type":"text","text":`...), p.text), '}')
			continue
		}
		b = append(quote(append(b, `{"type":"image_url","image_url":{"url":`...), p.image), `}}`...)
	}
	return append(b, ']')
}

// shown is a part's text, or what a prompt view shows in its place.
func shown(part *protocol.Part, text string) string {
	if part.Prune == nil {
		return text
	}
	return part.Prune.Breadcrumb
}

// replay is the reasoning that a server wants back. It is kept in protocol.Part.Replay.
type replay struct {
	Reasoning string `json:"reasoning"`
}

func appendAssistant(b []byte, m *protocol.Message, route string) []byte {
	var texts, thoughts []string
	calls := m.Calls()
	for i := range m.Parts {
		part := &m.Parts[i]
		switch part.Kind {
		case protocol.PartText, protocol.PartProse, protocol.PartCommentary, protocol.PartCode, protocol.PartOutput:
			if text := shown(part, part.Text); text != "" {
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
		b = quote(b, strings.Join(texts, "\n"))
	}
	if len(thoughts) > 0 {
		b = quote(append(b, `,"reasoning_content":`...), strings.Join(thoughts, "\n"))
	}
	return append(appendCalls(b, calls), `},`...)
}

func appendCalls(b []byte, calls []protocol.ToolCall) []byte {
	if len(calls) == 0 {
		return b
	}
	b = append(b, `,"tool_calls":[`...)
	for i, c := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		args := "{}" // servers exist that take only objects here; of what was none, the result tells
		if bytes.HasPrefix(bytes.TrimSpace(c.Args), []byte{'{'}) {
			args = string(c.Args)
		}
		b = quote(append(b, `{"id":`...), string(c.CallID))
		b = quote(append(b, `,"type":"function","function":{"name":`...), c.Name)
		b = append(quote(append(b, `,"arguments":`...), args), `}}`...)
	}
	return append(b, ']')
}

func appendResult(b []byte, part *protocol.Part) []byte {
	b = quote(append(b, `{"role":"tool","tool_call_id":`...), string(part.Result.CallID))
	return append(quote(append(b, `,"content":`...), resultText(part)), `},`...)
}

// resultText is what the model reads of a result. It must see at once when a call did not succeed.
func resultText(part *protocol.Part) string {
	out := &part.Result.Output
	if part.Prune != nil {
		if part.Prune.Breadcrumb == "" {
			return "[result removed]" // each call needs its answer
		}
		return part.Prune.Breadcrumb
	}
	text := out.Text
	if text == "" && out.Failure != nil {
		text = out.Failure.Message
	}
	if text == "" {
		text = string(out.Value)
	}
	text = out.Noted(text)
	switch out.Status {
	case protocol.OutputFailure:
		return strings.TrimSpace("The call failed. " + text)
	case protocol.OutputCancelled:
		return strings.TrimSpace("The call was cancelled. " + text)
	case protocol.OutputUnknown:
		return strings.TrimSpace("The outcome of this call is unknown: it was started, and it may or may not have taken effect. " + text)
	}
	return text
}
