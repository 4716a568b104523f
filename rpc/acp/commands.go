package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/engine/builtin/plan"
	"lashd/rpc/protocol"
)

// compact is the slash command that summarizes the conversation. It is lashd's
// own; all other commands are operations of plugins.
const compact = "compact"

// commandList keeps the editor's list of slash commands up to date.
type commandList struct {
	ref

	mu   sync.Mutex // held while a list is read and sent, so that the newest one is sent last
	sent []byte     // the list that the editor has
}

// refresh sends the list of slash commands if it has changed. It must first run after
// the answer that names the session, because editors drop updates of sessions they
// do not know.
func (l *commandList) refresh(ctx context.Context, call caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := &sdk.SessionAvailableCommandsUpdate{AvailableCommands: l.commands(ctx, call), SessionUpdate: "available_commands_update"}
	list, _ := json.Marshal(u) // cannot fail
	if ctx.Err() != nil || bytes.Equal(list, l.sent) {
		return
	}
	l.sent = list
	l.send(ctx, u)
}

// commands returns the slash commands of a session: compact, the operations
// that plugins offer to clients, and their skills and commands.
func (s *ref) commands(ctx context.Context, call caller) []sdk.AvailableCommand {
	all := []sdk.AvailableCommand{{
		Name: compact, Description: "Show what a summary of the conversation would replace, and summarize with /compact now.",
		Input: hint("[now] [what the summary must keep]"),
	}}
	for _, o := range s.operations(ctx, call) {
		c := sdk.AvailableCommand{Name: o.Name, Description: o.Description}
		if len(argumentNames(o)) > 0 {
			c.Input = hint(strings.Join(argumentNames(o), ", "))
		}
		all = append(all, c)
	}
	for _, o := range s.offered(ctx, call) {
		c := sdk.AvailableCommand{Name: o.Name, Description: cmp.Or(o.Description, o.Name)}
		if text := argumentsHint(o); text != "" {
			c.Input = hint(text)
		}
		all = append(all, c)
	}
	return all
}

// argumentsHint returns what an editor shows for the arguments of a skill or a command. The editor cannot complete them, so those of a prompt of an
// MCP server have their descriptions.
func argumentsHint(c protocol.CommandInfo) string {
	var all []string
	for _, a := range c.Arguments {
		text := a.Name
		if a.Description != "" {
			text += ": " + a.Description
		}
		if a.Required {
			all = append(all, "<"+text+">")
		} else {
			all = append(all, "["+text+"]")
		}
	}
	return cmp.Or(strings.Join(all, " "), c.Hint)
}

// offered returns the skills and commands of plugins. After an error it logs and returns none, as operations does.
func (s *ref) offered(ctx context.Context, call caller) []protocol.CommandInfo {
	var list protocol.CommandListResult
	if err := call(ctx, "command/list", protocol.SessionParams{SessionID: s.id}, &list); err != nil && ctx.Err() == nil {
		s.Log.Warn("could not list the commands of a session", "session", s.id, "error", err)
	}
	return list.Data
}

// hint is the text that an editor shows after a command's name until the user
// types arguments.
func hint(text string) *sdk.AvailableCommandInput {
	return &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: text}}
}

// operations returns the operations that can be called in this session. After an
// error it logs and returns none: a missing command list must not fail the
// session.
func (s *ref) operations(ctx context.Context, call caller) []protocol.OperationInfo {
	var list protocol.OperationListResult
	err := call(ctx, "operation/list", protocol.OperationListParams{SessionID: s.id}, &list)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("could not list the operations of a session", "session", s.id, "error", err)
	}
	return slices.DeleteFunc(list.Data, func(o protocol.OperationInfo) bool {
		return o.Session == protocol.SessionForbidden || slices.Contains([]string{protocol.CommandsID, protocol.ServersID, protocol.ResourcesID, protocol.CompletionsID, protocol.InstructionsQuery, protocol.CompactionQuery}, o.Name)
	})
}

// objectSchema is the part of an operation's input schema that decides how the
// text after a command becomes arguments.
type objectSchema struct {
	Properties map[string]struct {
		Type string `json:"type"`
	} `json:"properties"`
}

// argumentNames returns the names of an operation's arguments, sorted; none if the
// schema is not one of an object.
func argumentNames(o protocol.OperationInfo) []string {
	var schema objectSchema
	if json.Unmarshal(o.Input, &schema) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}

// slash is a prompt that begins with a command: the name without the slash, and
// the trimmed rest of the line. text says that it is a skill or a command of a plugin, which is the input of a turn.
type slash struct {
	name, rest string
	text       bool
	more       bool // the prompt has further blocks
}

// commandIn reports whether a prompt is a command. Its first block must be text that
// begins with a slash and a known name. Any other text with a slash goes to the
// model as it is. Further blocks belong to the input of a skill or a command.
func (s *ref) commandIn(blocks []sdk.ContentBlock) (slash, bool) {
	if len(blocks) == 0 || blocks[0].Text == nil || !strings.HasPrefix(blocks[0].Text.Text, "/") {
		return slash{}, false
	}
	name, rest, _ := strings.Cut(blocks[0].Text.Text[1:], " ")
	c := slash{name: strings.TrimSpace(name), rest: strings.TrimSpace(rest), more: len(blocks) > 1}
	if c.name == compact {
		return c, true
	}
	known := slices.ContainsFunc(s.operations(s.ctx, s.daemon.call), func(o protocol.OperationInfo) bool { return o.Name == c.name })
	if !known {
		c.text = slices.ContainsFunc(s.offered(s.ctx, s.daemon.call), func(o protocol.CommandInfo) bool { return o.Name == c.name })
	}
	return c, known || c.text
}

// runCommand runs a command and sends its result as a message of the agent. No
// turn runs and history does not change, except by what the operation does. A
// session/cancel ends the wait for it, and the prompt is then answered as
// cancelled.
func (p *prompts) runCommand(ctx context.Context, pr *prompt, c slash) (*sdk.PromptResponse, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.stopWith(pr, stop)
	if p.wasCancelled(pr) {
		return &sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	}
	text, err := p.invoke(ctx, c)
	switch {
	case err != nil && p.wasCancelled(pr):
		return &sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case err != nil:
		return nil, err
	}
	p.send(ctx, chunkOf(protocol.ItemAgentMessage, "", sdk.TextBlock(text)))
	return &sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, nil
}

// invoke runs a command and returns the text to show. A result that is a JSON
// string is shown as text, all others as a block of JSON.
func (s *ref) invoke(ctx context.Context, c slash) (string, error) {
	if c.name == compact {
		if rest, now := strings.CutPrefix(c.rest+" ", "now "); now {
			return s.compactNow(ctx, strings.TrimSpace(rest))
		}
		return s.previewCompaction(ctx, c.rest)
	}
	args, err := s.argumentsFor(ctx, c)
	if err != nil {
		return "", err
	}
	p := protocol.OperationParams{Mutation: newMutation(), SessionID: s.id, Name: c.name, Args: args}
	var r protocol.OperationReceipt
	if err := s.daemon.call(ctx, "action/invoke", p, &r); err != nil {
		return "", err
	}
	var plain string
	if json.Unmarshal(r.Output, &plain) == nil {
		return plain, nil
	}
	return "```json\n" + string(r.Output) + "\n```", nil
}

// noCompaction is the answer to the command compact if there is too little history.
const noCompaction = "There is nothing to summarize."

// compactNow summarizes the conversation. what says what the summary must keep.
func (s *ref) compactNow(ctx context.Context, what string) (string, error) {
	p := protocol.SessionCompactParams{Mutation: newMutation(), SessionID: s.id, Instructions: what}
	var r protocol.SessionCompactResult
	if err := s.daemon.call(ctx, "session/compact", p, &r); err != nil || !r.Compacted {
		return noCompaction, err
	}
	return "The conversation so far was summarized.", nil
}

// previewCompaction returns what a summary would replace, and the command that makes it. Indented lines keep editors from reading inputs as Markdown.
func (s *ref) previewCompaction(ctx context.Context, what string) (string, error) {
	var r protocol.CompactionPreviewResult
	if err := s.daemon.call(ctx, "session/compactPreview", protocol.SessionParams{SessionID: s.id}, &r); err != nil || !r.Compacts {
		return noCompaction, err
	}
	command := strings.TrimSpace("/" + compact + " now " + what)
	return "Nothing has changed yet.\n\n    " + strings.ReplaceAll(r.String(), "\n", "\n    ") + "\n\nTo summarize, send:\n\n    " + command + "\n", nil
}

// argumentsFor turns the text after a command into arguments. Text that begins
// with a brace is passed on as JSON. Other text becomes the value of the
// operation's only argument; with several arguments it is an error.
func (s *ref) argumentsFor(ctx context.Context, c slash) (json.RawMessage, error) {
	if c.rest == "" || strings.HasPrefix(c.rest, "{") {
		return json.RawMessage(c.rest), nil
	}
	for _, o := range s.operations(ctx, s.daemon.call) {
		if names := argumentNames(o); o.Name == c.name && len(names) == 1 {
			return json.Marshal(map[string]string{names[0]: c.rest})
		}
	}
	return nil, invalidParams("/prompt/0/text", fmt.Sprintf("the arguments of /%s must be a JSON object", c.name))
}

// showPlan sends the session's current plan, if it has one. A failure is ignored:
// the plugin may be off in this session.
func (s *ref) showPlan(ctx context.Context) {
	var r protocol.OperationQueryResult
	var p plan.Plan
	err := s.daemon.call(ctx, "operation/query", protocol.OperationQueryParams{SessionID: s.id, Name: plan.ID}, &r)
	if err == nil && json.Unmarshal(r.Output, &p) == nil && len(p.Steps) > 0 {
		s.send(ctx, planUpdate(p))
	}
}
