package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"lashd/engine/capture"
	"lashd/engine/proc"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// defaultTimeout is how long a call of a tool may take if nothing is said.
const defaultTimeout = 10 * time.Minute

// errTimeout is the cause with which a command is stopped that took too long.
var errTimeout = errors.New("timeout")

// commandTool is a tool that is a command.
type commandTool struct {
	manifest.Tool
	tool    tool.Tool
	command template
	env     map[string]string
}

func (p *Part) newTool(t manifest.Tool) (*commandTool, error) {
	input, err := schemaOf(t.Parameters)
	if err != nil {
		return nil, err
	}
	if err := tool.CheckSchema(input); err != nil {
		return nil, err
	}
	c := &commandTool{Tool: t, env: map[string]string{}, tool: tool.Tool{
		Manifest: protocol.ToolManifest{Name: t.Name, Description: t.Description, Input: input, Kind: protocol.ToolKind(t.Kind)},
		Contract: protocol.ToolContract{Replay: protocol.Replay(t.Replay), Serial: t.Serial},
	}}
	if !t.Shell {
		c.command = newTemplate(t.Command, p.substituted)
	}
	for name, value := range t.Env {
		c.env[name] = p.substituted(value)
	}
	return c, nil
}

// substituted is a text with the plugin's directories in it.
func (p *Part) substituted(text string) string {
	return manifest.Substitute(text, p.config.Root, p.config.Data, func(string) (string, bool) { return "", false })
}

// value is the structured result.
type value struct {
	ExitCode   int    `json:"exitCode"` // -1 if a signal ended it
	Signal     string `json:"signal,omitempty"`
	Truncated  bool   `json:"truncated"`
	Escaped    bool   `json:"escaped,omitempty"` // a process left the group, and could not be found to be stopped
	DurationMs int64  `json:"durationMs"`
}

// execute makes a call.
func (p *Part) execute(ctx context.Context, c *commandTool, cwd string, call tool.Invocation) protocol.ToolOutput {
	end, err := p.begin()
	if err != nil {
		return protocol.Fail(protocol.FailUnavailable, "plugin_stopped", err.Error(), protocol.FromPlugin)
	}
	defer end()
	v, err := valuesOf(c.Parameters, call.Args)
	if err != nil {
		return protocol.Fail(protocol.FailInvalidRequest, "invalid_arguments", fmt.Sprintf("arguments of %s: %v", c.Name, err), protocol.FromTool)
	}
	cmd, release, err := p.toolCommand(ctx, c, cwd, v)
	if err != nil {
		return p.unavailable(c, cmd, err)
	}
	defer release()
	out := capture.New(call.Host)
	defer out.Close()
	limit := cmp.Or(time.Duration(c.TimeoutMs)*time.Millisecond, defaultTimeout)
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	start := time.Now()
	exit, err := capture.Run(limited, cmd, out)
	switch {
	case err != nil && ctx.Err() != nil:
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "cancelled before the command ran"}
	case err != nil && exit == proc.Exit{}:
		return p.unavailable(c, cmd, err)
	}
	// The output of a cancelled command is worth as much as that of another.
	text, ref := out.Result(context.WithoutCancel(ctx), p.reading)
	result := ending(exit, limit)
	result.Text, result.Artifact = text+result.Text, ref
	result.Value, err = json.Marshal(value{exit.Code, exit.Signal, out.Truncated(), exit.Escaped, time.Since(start).Milliseconds()})
	if err != nil {
		return protocol.Fail(protocol.FailInternal, "encode", err.Error(), protocol.FromTool)
	}
	return result
}

func (p *Part) toolCommand(ctx context.Context, c *commandTool, cwd string, v values) (cmd proc.Command, release func(), err error) {
	dir, env := cwd, maps.Clone(c.env)
	if c.In == manifest.InPlugin {
		dir = p.config.Root
	}
	cmd.Argv, cmd.Dir = c.command.fill(v), dir
	if c.Shell {
		cmd.Argv = []string{"sh", "-c", c.Command[0]}
		maps.Copy(env, v.environment())
	}
	env["PWD"] = dir
	release, err = p.prepare(ctx, &cmd, cwd, c.PassEnv, env)
	return cmd, release, err
}

// unavailable is the result of a call whose command cannot be run.
func (p *Part) unavailable(c *commandTool, cmd proc.Command, err error) protocol.ToolOutput {
	if child.CodeOf(err) == child.Modified {
		return child.Failure(err, c.tool.Contract.Replay)
	}
	message := fmt.Sprintf("the tool %s cannot run: %v. The user must install %s or correct plugin.json of the plugin %s.",
		c.Name, err, cmd.Argv[0], p.config.ID)
	return protocol.Fail(protocol.FailUnavailable, "command_unavailable", message, protocol.FromTool)
}

// ending says how a command ended, without its output.
func ending(exit proc.Exit, limit time.Duration) protocol.ToolOutput {
	var out protocol.ToolOutput
	switch {
	case errors.Is(exit.Cause, errTimeout):
		out = protocol.Fail(protocol.FailTimeout, "timeout", fmt.Sprintf("the command was stopped after %s", limit), protocol.FromTool)
		out.Text = fmt.Sprintf("[Stopped after %s. This is the output until then.]\n", limit)
	case exit.Cause != nil:
		out = protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "[Cancelled. This is the output until then.]\n"}
	case exit.Signal != "":
		out = protocol.Fail(protocol.FailExecution, "signal", "the command was ended by "+exit.Signal, protocol.FromTool)
		out.Text = fmt.Sprintf("[Ended by %s.]\n", exit.Signal)
	case exit.Code != 0:
		out = protocol.Fail(protocol.FailExecution, "exit_status", fmt.Sprintf("the command ended with exit code %d", exit.Code), protocol.FromTool)
		out.Text = fmt.Sprintf("[Exit code %d.]\n", exit.Code)
	default:
		out = protocol.Succeed("")
	}
	if exit.Escaped {
		out.Text += "[A process left the command's group and held its output; it could not be stopped.]\n"
	}
	return out
}
