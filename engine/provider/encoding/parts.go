package encoding

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Shown returns a part's text, or the breadcrumb that a prompt view shows instead.
// A part that was pruned keeps its place, so the other parts of the message stay the same bytes.
func Shown(part *protocol.Part, text string) string {
	if part.Prune == nil {
		return text
	}
	return part.Prune.Breadcrumb
}

// Content is one block of a user's message: a text, an image, or a document. Exactly one of Text, Data and URL is set.
type Content struct {
	Text string
	Type string // media type of Data or URL
	Name string // file name of a document, if it has one
	Data []byte
	URL  string
}

// Image reports whether the block is an image.
func (c *Content) Image() bool { return strings.HasPrefix(c.Type, "image/") }

// Document reports whether the block is a file other than an image or text.
// Its data or URL is what the model gets; text files are blocks with Text.
func (c *Content) Document() bool { return c.Type != "" && !c.Image() }

// Base64 returns the block's data as servers take it.
func (c *Content) Base64() string { return base64.StdEncoding.EncodeToString(c.Data) }

// DataURL returns the block's data, or its URL, as a URL.
func (c *Content) DataURL() string {
	if len(c.Data) == 0 {
		return c.URL
	}
	return "data:" + c.Type + ";base64," + c.Base64()
}

// Contents returns the blocks of a message that go to the model as a user's content. Images and documents become a short text if
// the model does not take them. Tool results, which APIs send elsewhere, are not among them.
func Contents(m *protocol.Message, files *Files) []Content {
	var content []Content
	for i := range m.Parts {
		part := &m.Parts[i]
		switch part.Kind {
		case protocol.PartToolResult, protocol.PartReasoning, protocol.PartToolCall, protocol.PartError:
			continue
		case protocol.PartAttachment:
			content = append(content, attached(part.Attachment, part.Prune, files))
		default:
			if text := Shown(part, part.Text); text != "" {
				content = append(content, Content{Text: text})
			}
		}
	}
	return content
}

// attached returns an attachment as an image or a document if the model takes it, text files as text, and otherwise a note.
// The note has the name of the file, if there is one.
func attached(a *protocol.Attachment, pruned *protocol.Prune, files *Files) Content {
	if pruned != nil {
		return Content{Text: pruned.Breadcrumb}
	}
	name := "[attachment"
	if a.Name != "" {
		name += " " + a.Name
	}
	if a.URL != "" && files.noURL {
		return Content{Text: name + ", " + a.Type + ": the configuration of lashd does not allow attachments by URL]"}
	}
	takes, text := files.model.Takes(a.Type), strings.HasPrefix(a.Type, "text/")
	if !takes && !text {
		return Content{Text: name + ", " + a.Type + ": this model cannot read it]"}
	}
	data := files.read(a)
	switch {
	case a.Digest != "" && data == nil:
		return Content{Text: name + ", " + a.Type + ": its contents are not stored any more]"}
	case takes && (len(data) > 0 || a.URL != ""):
		return Content{Type: a.Type, Name: a.Name, Data: data, URL: a.URL}
	case text && len(data) > 0:
		return Content{Text: name + "]\n" + string(data)}
	case text && a.URL == "":
		return Content{Text: name + ", which is empty]"}
	}
	return Content{Text: name + ", " + a.Type + ": this model cannot read it]"}
}

// Texts returns the blocks joined as one text, and whether all of them are text.
// A line end separates the blocks. Other blocks are left out.
func Texts(content []Content) (string, bool) {
	texts := make([]string, 0, len(content))
	for i := range content {
		if content[i].Type == "" {
			texts = append(texts, content[i].Text)
		}
	}
	return strings.Join(texts, "\n"), len(texts) == len(content)
}

// Result returns what the model reads of a tool result: its text, with text files and notes about files that the model does not take,
// and the images and documents that belong to it.
func Result(part *protocol.Part, files *Files) (text string, media []Content) {
	text = resultText(part)
	if part.Prune != nil {
		return text, nil
	}
	all := part.Result.Output.Attachments
	for i := range all {
		c := attached(&all[i], nil, files)
		if c.Type != "" {
			media = append(media, c)
		} else {
			text = strings.TrimPrefix(text+"\n"+c.Text, "\n")
		}
	}
	return text, media
}

// resultText returns the text of a tool result. A result that is not a success says so first.
// It is empty if a tool succeeded without output. A call whose outcome is unknown says so: the model can check before it repeats the call.
func resultText(part *protocol.Part) string {
	out := &part.Result.Output
	if part.Prune != nil {
		if part.Prune.Breadcrumb == "" {
			return "[result removed]" // each call needs a result
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

// Object returns a call's arguments if they are a JSON object, and {} otherwise: servers reject any other value, and the
// result of the call says what was wrong.
func Object(args json.RawMessage) string {
	if bytes.HasPrefix(bytes.TrimSpace(args), []byte{'{'}) {
		return string(args)
	}
	return "{}"
}

// Dropped returns a receipt if attachments go to the model only as a note, and one if reasoning of another provider, server or
// model is left out.
// Pruned attachments do not count.
func Dropped(req *provider.Request, route string) Receipts {
	var receipts Receipts
	attachments, reasoning := false, false
	for _, m := range req.Messages {
		for i := range m.Parts {
			part := &m.Parts[i]
			attachments = attachments || part.Prune == nil && unreadable(part, req)
			reasoning = reasoning || part.Replay != nil && part.Route != route
		}
	}
	if attachments {
		receipts.Add("attachments", Unsupported)
	}
	if reasoning {
		receipts.Add("reasoning", OtherRoute)
	}
	return receipts
}

// unreadable reports whether a part has an attachment, its own or one of its result, that the model gets only as a note.
func unreadable(part *protocol.Part, req *provider.Request) bool {
	dropped := func(a *protocol.Attachment) bool {
		return a.URL != "" && req.DenyURLs || !req.Model.Takes(a.Type) && !strings.HasPrefix(a.Type, "text/")
	}
	if part.Attachment != nil && dropped(part.Attachment) {
		return true
	}
	if part.Result == nil {
		return false
	}
	all := part.Result.Output.Attachments
	for i := range all {
		if dropped(&all[i]) {
			return true
		}
	}
	return false
}

// CallID returns a call's id as every server accepts it: the ids of one server may have characters that another one rejects, or be
// too long. The same id always gives the same result.
func CallID(id protocol.CallID) string {
	if text := string(id); callID().MatchString(text) {
		return text
	}
	return hashedID(id)
}

// ChatCallID is CallID for Chat Completions: OpenAI's server takes at most 40 bytes. Shorter ids stay as they are, because some models
// expect their own form, such as functions.read:0.
func ChatCallID(id protocol.CallID) string {
	if len(id) <= 40 {
		return string(id)
	}
	return hashedID(id)
}

// hashedID returns an id that every server accepts.
// The id has 37 bytes.
func hashedID(id protocol.CallID) string {
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// callID matches the ids that Anthropic, OpenAI and Google accept.
var callID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })
