package foreign

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// claudeLine is a line of a file of Claude Code, ~/.claude/projects/*/*.jsonl. Lines form a tree by uuid and parentUuid: a rewind there
// continues from an older line, and a compaction begins a new root.
type claudeLine struct {
	Type          string `json:"type"`
	Subtype       string `json:"subtype"`
	UUID          string `json:"uuid"`
	Parent        string `json:"parentUuid"`
	LogicalParent string `json:"logicalParentUuid"`
	SessionID     string `json:"sessionId"`
	Timestamp     string `json:"timestamp"`
	Version       string `json:"version"`
	Cwd           string `json:"cwd"`
	Sidechain     bool   `json:"isSidechain"`
	Meta          bool   `json:"isMeta"`
	Compact       bool   `json:"isCompactSummary"`
	Summary       string `json:"summary"`
	CustomTitle   string `json:"customTitle"`
	AITitle       string `json:"aiTitle"`
	Message       struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`

	blocks []claudeBlock
}

// claudeBlock is a part of a message.
type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Title     string          `json:"title"`
	Source    struct {
		Type      string `json:"type"` // base64 or text
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

// claudeFile has the lines of a file that are part of the conversation.
type claudeFile struct {
	lines   []*claudeLine // of the main conversation, in the order of the file
	byUUID  map[string]*claudeLine
	results map[protocol.CallID]protocol.ToolOutput
	replies map[string][]*claudeLine // the lines of each reply, which has a line for each block
	title   [3]string                // of the person, of the model, and the summary
}

// convertClaude converts a file of Claude Code.
func convertClaude(all []byte) (*Session, error) {
	f := &claudeFile{byUUID: map[string]*claudeLine{}, results: map[protocol.CallID]protocol.ToolOutput{}, replies: map[string][]*claudeLine{}}
	s := &Session{}
	err := eachLine(all, func(l *claudeLine) error {
		s.ID, s.Version, s.Cwd = cmp.Or(s.ID, l.SessionID), cmp.Or(l.Version, s.Version), cmp.Or(s.Cwd, l.Cwd)
		return f.add(l)
	})
	if err != nil {
		return nil, err
	}
	b := &builder{}
	told := map[string]bool{}
	for _, l := range f.path() {
		if id := l.Message.ID; l.Type != "assistant" || !told[id] {
			f.tell(b, l)
			told[id] = true
		}
	}
	s.Nodes, s.Title = b.nodes, cmp.Or(f.title[0], f.title[1], f.title[2])
	return s, nil
}

// add adds a line to the file.
func (f *claudeFile) add(l *claudeLine) (err error) {
	switch l.Type {
	case "custom-title":
		f.title[0] = l.CustomTitle
	case "ai-title":
		f.title[1] = l.AITitle
	case "summary":
		f.title[2] = l.Summary
	}
	if l.Sidechain || l.UUID == "" {
		return nil
	}
	if l.Type == "user" || l.Type == "assistant" {
		if l.blocks, err = blocksOf(l.Message.Content); err != nil {
			return err
		}
	}
	f.lines, f.byUUID[l.UUID] = append(f.lines, l), l
	if l.Type == "assistant" {
		l.Message.ID = cmp.Or(l.Message.ID, l.UUID)
		f.replies[l.Message.ID] = append(f.replies[l.Message.ID], l)
	}
	for _, block := range l.blocks {
		if block.Type == "tool_result" {
			status := protocol.OutputSuccess
			if block.IsError {
				status = protocol.OutputFailure
			}
			inner, err := blocksOf(block.Content)
			if err != nil {
				return err
			}
			f.results[protocol.CallID(block.ToolUseID)] = outputOf(status, partsOf(inner))
		}
	}
	return nil
}

// blocksOf decodes the content of a message: a text, or blocks.
func blocksOf(content json.RawMessage) (blocks []claudeBlock, err error) {
	if len(content) == 0 || string(content) == "null" {
		return nil, nil
	}
	if content[0] == '"' {
		var s string
		err = json.Unmarshal(content, &s)
		return []claudeBlock{{Type: "text", Text: s}}, err
	}
	err = json.Unmarshal(content, &blocks)
	return blocks, err
}

// path returns the lines of the newest branch, oldest first. It ends with the newest line of the conversation. Where a parent is not in
// the file, it begins.
func (f *claudeFile) path() (path []*claudeLine) {
	i := len(f.lines) - 1
	for i >= 0 && f.lines[i].Type != "user" && f.lines[i].Type != "assistant" {
		i--
	}
	if i < 0 {
		return nil
	}
	seen := map[string]bool{}
	for l := f.lines[i]; l != nil && !seen[l.UUID]; l = f.byUUID[cmp.Or(l.Parent, l.LogicalParent)] {
		seen[l.UUID] = true
		path = append(path, l)
	}
	slices.Reverse(path)
	return path
}

// tell adds a line to the history. Results of calls come with their calls, wherever the file has them.
func (f *claudeFile) tell(b *builder, l *claudeLine) {
	at := milliseconds(l.Timestamp)
	switch {
	case l.Type == "system" && l.Subtype == "compact_boundary":
		b.compacted(at)
	case l.Type == "assistant":
		f.reply(b, at, f.replies[l.Message.ID])
	case l.Type == "user" && l.Compact:
		b.summary(at, text(textOf(l.blocks))...)
	case l.Type == "user" && (l.Meta || byProgram(textOf(l.blocks))):
		b.notice(at, textOf(l.blocks))
	case l.Type == "user":
		b.input(at, partsOf(l.blocks)...)
	}
}

// marks begin texts in the input of Claude Code that the program wrote, such as the output of a local command.
var marks = []string{"<command-name>", "<command-message>", "<local-command-", "<bash-", "<task-notification>", "<system-reminder>", "[Request interrupted by user"}

// byProgram reports whether the program wrote a text.
func byProgram(s string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(strings.TrimSpace(s), mark) })
}

// reply adds a reply of the model and the results of its calls.
func (f *claudeFile) reply(b *builder, at int64, lines []*claudeLine) {
	var blocks []claudeBlock
	for _, l := range lines {
		blocks = append(blocks, l.blocks...)
	}
	kind := protocol.PartProse
	if slices.ContainsFunc(blocks, func(c claudeBlock) bool { return c.Type == "tool_use" }) {
		kind = protocol.PartCommentary
	}
	var parts []protocol.Part
	for _, c := range blocks {
		switch {
		case c.Type == "text" && c.Text != "":
			parts = append(parts, protocol.Part{Kind: kind, Text: c.Text})
		case c.Type == "thinking" && c.Thinking != "":
			parts = append(parts, protocol.Part{Kind: protocol.PartReasoning, Text: c.Thinking})
		case c.Type == "tool_use":
			parts = append(parts, call(c.ID, c.Name, string(c.Input)))
		}
	}
	b.reply(at, parts...)
	if len(b.calls) > 0 {
		b.results(milliseconds(lines[len(lines)-1].Timestamp), f.results)
	}
}

// textOf returns the texts of blocks.
func textOf(blocks []claudeBlock) string {
	var texts []string
	for _, c := range blocks {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// partsOf converts the texts, images and documents of blocks.
func partsOf(blocks []claudeBlock) (parts []protocol.Part) {
	for _, c := range blocks {
		switch c.Type {
		case "text":
			parts = append(parts, text(c.Text)...)
		case "image", "document":
			parts = append(parts, file(c.Title, c.Source.MediaType, c.data()))
		}
	}
	return parts
}

// data returns the contents of an image or a document; nil if the file does not have them.
func (c *claudeBlock) data() []byte {
	if c.Source.Type == "text" {
		return []byte(c.Source.Data)
	}
	data, err := base64.StdEncoding.DecodeString(c.Source.Data)
	if err != nil {
		return nil
	}
	return data
}
