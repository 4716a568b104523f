package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/engine/builtin/plan"
	"lashd/rpc/protocol"
)

// compact is the command that has history summarised.
const compact = "compact"

// greet tells the editor, once it knows the session, what else there is.
func (s *ref) greet(ctx context.Context, call caller) {
	s.send(ctx, &sdk.SessionAvailableCommandsUpdate{AvailableCommands: s.commands(ctx, call), SessionUpdate: "available_commands_update"})
}

// commands are what a prompt may begin with: what plugins offer to clients, and what lashd has itself.
func (s *ref) commands(ctx context.Context, call caller) []sdk.AvailableCommand {
	all := []sdk.AvailableCommand{{
		Name: compact, Description: "Summarize the conversation so far to free context.",
		Input: hint("what the summary must keep"),
	}}
	for _, o := range s.operations(ctx, call) {
		c := sdk.AvailableCommand{Name: o.Name, Description: o.Description}
		if len(argumentNames(o)) > 0 {
			c.Input = hint(strings.Join(argumentNames(o), ", "))
		}
		all = append(all, c)
	}
	return all
}

func hint(text string) *sdk.AvailableCommandInput {
	return &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: text}}
}

// operations are those that can be called in a session.
func (s *ref) operations(ctx context.Context, call caller) []protocol.OperationInfo {
	var list protocol.OperationListResult
	err := call(ctx, "operation/list", protocol.OperationListParams{SessionID: s.id}, &list)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("could not list the operations of a session", "session", s.id, "error", err)
	}
	return slices.DeleteFunc(list.Data, func(o protocol.OperationInfo) bool { return o.Session == protocol.SessionForbidden })
}

// objectSchema is what of a schema tells how a line of text may be an argument.
type objectSchema struct {
	Properties map[string]struct {
		Type string `json:"type"`
	} `json:"properties"`
}

func argumentNames(o protocol.OperationInfo) []string {
	var schema objectSchema
	if json.Unmarshal(o.Input, &schema) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}

// slash is a prompt that begins with the name of a command.
type slash struct{ name, rest string }

// commandIn tells whether a prompt is a command.
func (s *ref) commandIn(blocks []sdk.ContentBlock) (slash, bool) {
	if len(blocks) != 1 || blocks[0].Text == nil || !strings.HasPrefix(blocks[0].Text.Text, "/") {
		return slash{}, false
	}
	name, rest, _ := strings.Cut(blocks[0].Text.Text[1:], " ")
	c := slash{strings.TrimSpace(name), strings.TrimSpace(rest)}
	if c.name == compact {
		return c, true
	}
	known := slices.ContainsFunc(s.operations(s.ctx, s.daemon.call), func(o protocol.OperationInfo) bool { return o.Name == c.name })
	return c, known
}

// runCommand does what a command says, and shows what it answers.
func (p *prompts) runCommand(ctx context.Context, pr *prompt, c slash) (*sdk.PromptResponse, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.mu.Lock()
	pr.stop = stop
	cancelled := pr.cancelled
	p.mu.Unlock()
	if cancelled {
		return &sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	}
	text, err := p.invoke(ctx, c)
	p.mu.Lock()
	cancelled = pr.cancelled
	p.mu.Unlock()
	switch {
	case err != nil && cancelled:
		return &sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case err != nil:
		return nil, err
	}
	p.send(ctx, chunkOf(protocol.ItemAgentMessage, "", sdk.TextBlock(text)))
	return &sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, nil
}

func (s *ref) invoke(ctx context.Context, c slash) (string, error) {
	if c.name == compact {
		p := protocol.SessionCompactParams{Mutation: once(), SessionID: s.id, Instructions: c.rest}
		var r protocol.SessionCompactResult
		if err := s.daemon.call(ctx, "session/compact", p, &r); err != nil || !r.Compacted {
			return "There is nothing to summarize.", err
		}
		return "The conversation so far was summarized.", nil
	}
	args, err := s.argumentsFor(ctx, c)
	if err != nil {
		return "", err
	}
	p := protocol.OperationParams{Mutation: once(), SessionID: s.id, Name: c.name, Args: args}
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

// argumentsFor takes what follows a command: JSON, or the text of the one argument that there is.
func (s *ref) argumentsFor(ctx context.Context, c slash) (json.RawMessage, error) {
	if c.rest == "" || strings.HasPrefix(c.rest, "{") {
		return json.RawMessage(c.rest), nil
	}
	for _, o := range s.operations(ctx, s.daemon.call) {
		if names := argumentNames(o); o.Name == c.name && len(names) == 1 {
			return json.Marshal(map[string]string{names[0]: c.rest})
		}
	}
	return nil, bad("/prompt/0/text", fmt.Sprintf("the arguments of /%s must be a JSON object", c.name))
}

// showPlan shows the plan that the session has.
func (s *ref) showPlan(ctx context.Context) {
	var r protocol.OperationQueryResult
	var p plan.Plan
	err := s.daemon.call(ctx, "operation/query", protocol.OperationQueryParams{SessionID: s.id, Name: plan.ID}, &r)
	if err == nil && json.Unmarshal(r.Output, &p) == nil && len(p.Steps) > 0 {
		s.send(ctx, planUpdate(p))
	}
}
