package foreign

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// codexLine is a line of a file of Codex, ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl. The first versions had no payload: the line was
// the item.
type codexLine struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
	whole     json.RawMessage
}

// UnmarshalJSON keeps the whole line.
func (l *codexLine) UnmarshalJSON(data []byte) error {
	type plain codexLine
	l.whole = slices.Clone(data)
	return json.Unmarshal(data, (*plain)(l))
}

// codexItem is an item of the conversation, an event, or the description of the session.
type codexItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Cwd       string          `json:"cwd"`
	Version   string          `json:"cli_version"`
	Role      string          `json:"role"`
	Phase     string          `json:"phase"`
	Name      string          `json:"name"`
	CallID    string          `json:"call_id"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Action    json.RawMessage `json:"action"`
	Output    json.RawMessage `json:"output"`
	NumTurns  int             `json:"num_turns"`
	Message   string          `json:"message"`
	Content   []codexContent  `json:"content"`
	Summary   json.RawMessage `json:"summary"` // of a reasoning item: parts; of a turn: a word

	ReplacementHistory []json.RawMessage `json:"replacement_history"`
}

// codexContent is a part of a message.
type codexContent struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
}

// codexFile is a conversation while its file is read. Items of one reply are lines of their own.
type codexFile struct {
	*builder
	at       int64
	reply    []protocol.Part
	outputs  map[protocol.CallID]protocol.ToolOutput
	waits    map[protocol.CallID]bool // calls of the reply without an output
	searches int
}

// convertCodex converts a file of Codex.
func convertCodex(all []byte) (*Session, error) {
	s := &Session{}
	f := &codexFile{builder: &builder{}, outputs: map[protocol.CallID]protocol.ToolOutput{}, waits: map[protocol.CallID]bool{}}
	err := eachLine(all, func(l *codexLine) error { return f.line(s, l) })
	if err != nil {
		return nil, err
	}
	f.end()
	s.Nodes = f.nodes
	return s, nil
}

// line adds a line.
func (f *codexFile) line(s *Session, l *codexLine) error {
	f.at = cmp.Or(milliseconds(l.Timestamp), f.at)
	body := l.Payload
	if body == nil {
		body = l.whole
	}
	switch l.Type {
	case "session_meta", "":
		var item codexItem
		err := json.Unmarshal(body, &item)
		s.ID, s.Cwd, s.Version = cmp.Or(s.ID, item.ID), cmp.Or(s.Cwd, item.Cwd), cmp.Or(item.Version, s.Version)
		return err
	case "turn_context":
		return nil
	case "compacted":
		return f.compact(body)
	case "event_msg":
		var event struct {
			Type     string `json:"type"`
			NumTurns int    `json:"num_turns"`
		}
		if err := json.Unmarshal(body, &event); err != nil {
			return err
		}
		if event.Type == "thread_rolled_back" {
			f.end()
			f.rollBack(event.NumTurns)
		}
		return nil
	}
	return f.item(body)
}

// compact begins a new frame with the summary, or with what the model saw in its place.
func (f *codexFile) compact(body json.RawMessage) error {
	var c struct {
		Message            string            `json:"message"`
		ReplacementHistory []json.RawMessage `json:"replacement_history"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	f.end()
	f.compacted(f.at)
	if c.Message != "" {
		f.summary(f.at, text(c.Message)...)
		return nil
	}
	for _, raw := range c.ReplacementHistory {
		var item codexItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		if item.Type == "message" && item.Role == "user" {
			f.summary(f.at, contentParts(item.Content)...)
		}
	}
	return nil
}

// item adds an item of the conversation. Items of other kinds are skipped.
func (f *codexFile) item(body json.RawMessage) error {
	var item codexItem
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(body, &kind); err != nil {
		return err
	}
	if !slices.Contains([]string{"message", "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "function_call_output", "custom_tool_call_output"}, kind.Type) {
		return nil
	}
	if err := json.Unmarshal(body, &item); err != nil {
		return err
	}
	switch item.Type {
	case "message":
		f.said(&item)
	case "reasoning":
		f.says(protocol.Part{Kind: protocol.PartReasoning, Text: reasoningText(&item)})
	case "function_call":
		f.calling(item.CallID, item.Name, item.Arguments)
	case "custom_tool_call":
		f.calling(item.CallID, item.Name, item.Input)
	case "local_shell_call":
		f.calling(cmp.Or(item.CallID, item.ID), "local_shell", string(item.Action))
	case "web_search_call":
		f.searches++
		id := fmt.Sprintf("web_search_%d", f.searches)
		f.calling(id, "web_search", string(item.Action))
		f.returns(id, protocol.ToolOutput{Status: protocol.OutputSuccess})
	default:
		out, err := codexOutput(item.Output)
		if err != nil {
			return err
		}
		f.returns(item.CallID, out)
	}
	return nil
}

// said adds a message of a person, of the program or of the model.
func (f *codexFile) said(item *codexItem) {
	parts := contentParts(item.Content)
	switch {
	case item.Role == "assistant":
		kind := protocol.PartProse
		if item.Phase == "commentary" {
			kind = protocol.PartCommentary
		}
		for _, p := range parts {
			f.says(protocol.Part{Kind: kind, Text: p.Text})
		}
	case item.Role != "user" || len(parts) > 0 && codexWrote(parts[0].Text):
		f.end()
		for _, p := range parts {
			f.notice(f.at, p.Text)
		}
	default:
		f.end()
		f.input(f.at, parts...)
	}
}

// codexMarks begin texts in the input of Codex that the program wrote.
var codexMarks = []string{"<environment_context>", "<user_instructions>", "<permissions instructions>", "<turn_aborted>", "<user_shell_command>", "<skill>", "<subagent_notification>", "# AGENTS.md instructions", "<INSTRUCTIONS>"}

// codexWrote reports whether the program wrote a text.
func codexWrote(s string) bool {
	return slices.ContainsFunc(codexMarks, func(mark string) bool { return strings.HasPrefix(strings.TrimSpace(s), mark) })
}

// says adds a part to the reply. A reply ends when its calls have returned and the model goes on.
func (f *codexFile) says(p protocol.Part) {
	if p.Call == nil && p.Text == "" {
		return
	}
	if len(f.outputs) > 0 && len(f.waits) == 0 {
		f.end()
	}
	f.reply = append(f.reply, p)
}

// calling adds a call to the reply. An id that has no result yet cannot be used again.
func (f *codexFile) calling(id, name, args string) {
	if len(f.outputs) > 0 && len(f.waits) == 0 || f.waits[protocol.CallID(id)] {
		f.end()
	}
	if id == "" || name == "" {
		return
	}
	f.waits[protocol.CallID(id)] = true
	f.reply = append(f.reply, call(id, name, args))
}

// returns adds the output of a call of the reply. Others are skipped.
func (f *codexFile) returns(id string, out protocol.ToolOutput) {
	if f.waits[protocol.CallID(id)] {
		delete(f.waits, protocol.CallID(id))
		f.outputs[protocol.CallID(id)] = out
	}
}

// end adds the reply and the results of its calls to the history.
func (f *codexFile) end() {
	if len(f.reply) > 0 {
		f.builder.reply(f.at, f.reply...)
		f.results(f.at, f.outputs)
	}
	f.reply = nil
	clear(f.outputs)
	clear(f.waits)
}

// contentParts converts the texts and images of a message.
func contentParts(content []codexContent) (parts []protocol.Part) {
	for _, c := range content {
		switch c.Type {
		case "input_text", "output_text", "text":
			parts = append(parts, text(c.Text)...)
		case "input_image":
			parts = append(parts, image(c.ImageURL))
		}
	}
	return parts
}

// image converts an image in a data URL.
func image(address string) protocol.Part {
	head, body, _ := strings.Cut(strings.TrimPrefix(address, "data:"), ",")
	data, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		data = nil
	}
	return file("", strings.TrimSuffix(head, ";base64"), data)
}

// reasoningText returns the summary of the model's reasoning, which may be encrypted otherwise.
func reasoningText(item *codexItem) string {
	var summary []codexContent
	if json.Unmarshal(item.Summary, &summary) != nil {
		return ""
	}
	var texts []string
	for _, c := range append(summary, item.Content...) {
		if c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// codexOutput converts the output of a call: a text, parts, or an object with one of them and whether the call succeeded. The text of a
// command may be an object too, with its output and exit code.
func codexOutput(raw json.RawMessage) (protocol.ToolOutput, error) {
	status := protocol.OutputSuccess
	var whole struct {
		Content json.RawMessage `json:"content"`
		Success *bool           `json:"success"`
	}
	if len(raw) > 0 && raw[0] == '{' {
		if err := json.Unmarshal(raw, &whole); err != nil {
			return protocol.ToolOutput{}, err
		}
		if whole.Success != nil && !*whole.Success {
			status = protocol.OutputFailure
		}
		raw = whole.Content
	}
	if len(raw) > 0 && raw[0] == '[' {
		var content []codexContent
		err := json.Unmarshal(raw, &content)
		return outputOf(status, contentParts(content)), err
	}
	var s string
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			return protocol.ToolOutput{}, err
		}
	}
	var command struct {
		Output   *string `json:"output"`
		Metadata struct {
			ExitCode int `json:"exit_code"`
		} `json:"metadata"`
	}
	if strings.HasPrefix(s, "{") && json.Unmarshal([]byte(s), &command) == nil && command.Output != nil {
		if s = *command.Output; command.Metadata.ExitCode != 0 {
			status = protocol.OutputFailure
		}
	}
	return protocol.ToolOutput{Status: status, Text: s}, nil
}
