package command

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// input is the JSON on a hook's stdin, in the format of other agents. Fields without meaning for an
// event are absent. The names are part of that format and must not change.
type input struct {
	SessionID      protocol.SessionID `json:"session_id"`
	TranscriptPath string             `json:"transcript_path"`
	Cwd            string             `json:"cwd"`
	PermissionMode string             `json:"permission_mode"`
	Event          string             `json:"hook_event_name"`
	TurnID         protocol.TurnID    `json:"turn_id,omitempty"`
	Model          string             `json:"model,omitempty"`
	AgentID        protocol.SessionID `json:"agent_id,omitempty"`   // only in a child session: its ID
	AgentType      string             `json:"agent_type,omitempty"` // only in a child session

	ToolName     string          `json:"tool_name,omitempty"`
	ToolInput    json.RawMessage `json:"tool_input,omitempty"`
	ToolUseID    protocol.CallID `json:"tool_use_id,omitempty"`
	ToolResponse *response       `json:"tool_response,omitempty"`
	DurationMs   *int64          `json:"duration_ms,omitempty"`
	Error        string          `json:"error,omitempty"`
	ErrorDetails string          `json:"error_details,omitempty"`
	IsInterrupt  *bool           `json:"is_interrupt,omitempty"`

	Prompt       *string `json:"prompt,omitempty"`
	Active       *bool   `json:"stop_hook_active,omitempty"`
	Last         *string `json:"last_assistant_message,omitempty"`
	Source       string  `json:"source,omitempty"`
	Reason       string  `json:"reason,omitempty"`
	Trigger      string  `json:"trigger,omitempty"`
	Instructions *string `json:"custom_instructions,omitempty"`

	view *plugin.View // for the transcript; nil: the event has none
}

// encode returns JSON without HTML escapes. Hooks are often shell scripts that search the text for
// & and <.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// common returns the fields that every hook gets. view may be nil; then the fields about settings
// have defaults. Some events have no view, for example the end of a session.
func (s *session) common(event string, turn protocol.TurnID, view *plugin.View) input {
	in := input{SessionID: s.build.SessionID, Cwd: s.build.Cwd, PermissionMode: "default", Event: event, TurnID: turn}
	if !s.build.Root() {
		in.AgentID, in.AgentType = s.build.SessionID, s.agentType()
	}
	if in.view = view; view != nil {
		in.PermissionMode, in.Model = modeOf(view.Session.Config), view.Session.Config.Model.ID
	}
	return in
}

// agentType returns the type of a child session for matchers.
func (s *session) agentType() string {
	if sub := s.build.Authority.Subagent; sub != nil && sub.Capability != "" {
		return sub.Capability
	}
	return "child"
}

// modeOf returns the approval mode of a session in the words of other agents: plan,
// bypassPermissions if everything is allowed, or default.
func modeOf(c protocol.Config) string {
	var plan struct{ Mode string }
	if err := json.Unmarshal(c.Options["plan"], &plan); err == nil && plan.Mode == "plan" {
		return "plan"
	}
	if c.Approval.Mode == protocol.ApproveAllow {
		return "bypassPermissions"
	}
	return "default"
}

// look returns a view of the hook's session, or nil if the host does not offer one. A hook then
// runs without the fields that need it.
func look(ctx context.Context, host plugin.Capabilities) *plugin.View {
	state, err := host.NeedState()
	if err != nil {
		return nil
	}
	view, err := state.View(ctx, "")
	if err != nil {
		return nil
	}
	return view
}

// textOf returns the text of all messages with a role, joined by newlines.
func textOf(role protocol.Role, messages []protocol.Message) string {
	var texts []string
	for _, m := range messages {
		if m.Role != role {
			continue
		}
		for _, p := range m.Parts {
			if p.Text != "" && (p.Kind == protocol.PartText || p.Kind == protocol.PartProse) {
				texts = append(texts, p.Text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// lastAnswer returns the text of the model's last message; empty: it has not answered yet.
func lastAnswer(messages []protocol.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == protocol.RoleAssistant {
			return textOf(protocol.RoleAssistant, messages[i:i+1])
		}
	}
	return ""
}

// response is the result of a tool call in the format of other agents' tools.
type response struct {
	Success     bool            `json:"success"`
	FilePath    string          `json:"filePath,omitempty"`
	Stdout      *string         `json:"stdout,omitempty"`
	Stderr      *string         `json:"stderr,omitempty"`
	Interrupted *bool           `json:"interrupted,omitempty"`
	Text        string          `json:"text,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"` // lashd's structured result
}

// shellEnd matches what shell adds to the output of a command. The value has it, too.
var shellEnd = regexp.MustCompile(`(?m)^\[(Exit code \d+|Ended by \S+|Cancelled\. .*|Stopped after .*)\.\]\n\z`)

// responseOf returns the result of a call. said are the arguments in the format that the hook got.
// The result of shell has the fields that other agents' shell tools have.
func responseOf(tool string, said json.RawMessage, out protocol.ToolOutput) response {
	r := response{Success: out.Status == protocol.OutputSuccess, Value: out.Value}
	var file struct {
		Path string `json:"file_path"`
	}
	if json.Unmarshal(said, &file) == nil {
		r.FilePath = file.Path
	}
	if tool == "shell" {
		stdout := shellEnd.ReplaceAllString(out.Text, "")
		r.Stdout, r.Stderr, r.Interrupted = &stdout, new(string), new(out.Status == protocol.OutputCancelled)
		return r
	}
	r.Text = out.Text
	return r
}
