package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// wireTool is a tool on the wire.
type wireTool struct {
	protocol.ToolManifest
	Contract protocol.ToolContract `json:"contract"`
}

// tool returns the tool for the engine. Without a replay rule, calls are never repeated.
func (t wireTool) tool() tool.Tool {
	t.Contract.Replay = cmp.Or(t.Contract.Replay, protocol.ReplayNever)
	return tool.Tool{Manifest: t.ToolManifest, Contract: t.Contract}
}

// tools offers the plugin's tools in one session.
type tools struct{ *instance }

// Tools implements tool.Provider.
func (t *tools) Tools() []tool.Tool {
	if list := t.list.Load(); list != nil {
		return *list
	}
	return t.factory.config.Contributes.Tools
}

// toolCall holds the parameters of tool/execute and tool/prepare.
type toolCall struct {
	of
	until
	TurnID  protocol.TurnID `json:"turnId,omitempty"`
	CallID  protocol.CallID `json:"callId"`
	Attempt int             `json:"attempt"`
	ToolID  string          `json:"toolId"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args"`
}

// callOf returns the parameters of a tool call, except for the instance and the grant.
func callOf(c *tool.Invocation) toolCall {
	return toolCall{TurnID: c.TurnID, CallID: c.CallID, Attempt: c.Attempt, ToolID: c.ToolID, Name: c.Name, Args: c.Args}
}

// toolResult is the answer to tool/execute.
type toolResult struct {
	Output  protocol.ToolOutput   `json:"output"`
	Control *protocol.ToolControl `json:"control,omitempty"`
	Intents []protocol.ToolIntent `json:"intents,omitempty"`
}

// lastWord is how long a cancelled tool call may still report its result. The engine waits hardly
// longer, so more time would be useless.
const lastWord = 40 * time.Millisecond

// Execute implements tool.Provider. A failure of the plugin becomes a failed output with the
// error's code, which the model reads. Only the end of ctx is returned as an error.
func (t *tools) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	return t.execute(ctx, call, t.contract(call.ToolID))
}

// execute runs a call under a contract.
func (t *tools) execute(ctx context.Context, call tool.Invocation, contract protocol.ToolContract) (tool.Result, error) {
	if call.Sandbox == protocol.SandboxReadOnly && t.factory.readOnly != nil {
		return tool.Result{Output: protocol.Fail(protocol.FailPermission, "wider_sandbox", fmt.Sprintf("The tool %s did not run: this work may only read, and the plugin %s "+
			"can change files in this session. Start a session with the sandbox mode readOnly to use it.", call.Name, t.factory.ID()), protocol.FromPolicy)}, nil
	}
	limit := t.factory.config.Deadlines.Tool
	if contract.TimeoutMs > 0 {
		limit = time.Duration(contract.TimeoutMs) * time.Millisecond
	}
	wire := callOf(&call)
	g := &grant{host: plugin.ForTool(call), tool: call.Host, stored: &artifactNames{refs: map[protocol.Digest]bool{}}}
	answer, err := asked[toolResult](ctx, t.instance, "tool/execute", limit, lastWord, g, func(s *seat, u until) any {
		wire.of, wire.until = t.of(s), u
		return wire
	})
	if err == nil {
		if err = checkOutput(&answer.Output, g.stored.has); err == nil {
			answer.Output.Text += g.found
			return tool.Result{Output: answer.Output, Control: answer.Control, Intents: answer.Intents}, nil
		}
		err = &Error{Plugin: t.factory.ID(), Code: Protocol, Err: fmt.Errorf("tool/execute: %w", err)}
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	out := child.Failure(err, contract.Replay)
	out.Text += g.found
	return tool.Result{Output: out}, nil
}

// contract returns the contract of a tool by its ID.
func (t *tools) contract(id string) protocol.ToolContract {
	for _, x := range t.Tools() {
		if cmp.Or(x.Manifest.ID, x.Manifest.Name) == id {
			return x.Contract
		}
	}
	return protocol.ToolContract{}
}

// checkOutput returns an error for an incomplete output, and for a reference to an artifact that
// the call did not store. Otherwise a plugin could read artifacts of others by naming their
// digests.
func checkOutput(out *protocol.ToolOutput, stored func(protocol.Digest) bool) error {
	switch out.Status {
	case protocol.OutputSuccess, protocol.OutputCancelled:
		if out.Failure != nil {
			return fmt.Errorf("the output has status %s but contains a failure", out.Status)
		}
	case protocol.OutputFailure:
		if out.Failure == nil || out.Failure.Class == "" || out.Failure.Code == "" {
			return errors.New("the failure has no class and code")
		}
	default:
		return fmt.Errorf("unknown output status %.80q", out.Status)
	}
	if a := out.Artifact; a != nil && (stored == nil || !stored(a.Digest)) {
		return errors.New("the output refers to an artifact that the call did not store")
	}
	return nil
}

// preparingTools offers tools whose arguments the plugin completes before a call.
type preparingTools struct{ *tools }

// Prepare implements tool.Preparer.
func (t *preparingTools) Prepare(ctx context.Context, call tool.Invocation) (tool.Invocation, error) {
	wire := callOf(&call)
	answer, err := ask[struct {
		Args json.RawMessage `json:"args"`
	}](ctx, t.instance, "tool/prepare", t.factory.config.Deadlines.Hook, nil, func(s *seat, u until) any {
		wire.of, wire.until = t.of(s), u
		return wire
	})
	if err != nil {
		return call, err
	}
	call.Args = answer.Args
	return call, nil
}

// addedTools offers tools that a transformContext hook added for one turn.
type addedTools struct {
	tools
	added []tool.Tool
}

// Tools implements tool.Provider.
func (t *addedTools) Tools() []tool.Tool { return t.added }

// Execute implements tool.Provider.
func (t *addedTools) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	for _, x := range t.added {
		if cmp.Or(x.Manifest.ID, x.Manifest.Name) == call.ToolID {
			return t.execute(ctx, call, x.Contract)
		}
	}
	return tool.Result{}, fmt.Errorf("no tool %q", call.ToolID)
}
