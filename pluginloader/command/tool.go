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
	"lashd/engine/sandbox"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// defaultTimeout is the time limit of a tool call without a limit of its own. Builds and test runs
// fit into it.
const defaultTimeout = 10 * time.Minute

// errTimeout is the cause with which a command is stopped at its time limit.
var errTimeout = errors.New("timeout")

// commandTool is a tool that runs a command, prepared when the plugin is loaded. It never changes.
type commandTool struct {
	manifest.Tool
	tool    tool.Tool
	command template          // nil for a shell script
	env     map[string]string // with variables replaced
}

// newTool prepares a tool of the manifest: its schema, its template and its environment.
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

// substituted replaces the variables for the plugin's directories.
func (p *Part) substituted(text string) string {
	return manifest.Substitute(text, p.config.Root, p.config.Data, func(string) (string, bool) { return "", false })
}

// value is the structured result of a call, for clients and plugins. The model reads the text.
type value struct {
	ExitCode   int    `json:"exitCode"` // -1 if a signal ended the command
	Signal     string `json:"signal,omitempty"`
	Truncated  bool   `json:"truncated"`
	Escaped    bool   `json:"escaped,omitempty"` // a process left the group and could not be stopped
	DurationMs int64  `json:"durationMs"`
}

// execute runs a tool call to its end. Every failure becomes an output for the model: wrong
// arguments, a program that does not start, a timeout, and a failing exit code. The output of the
// command is stored even if ctx has ended. Long output becomes an artifact, and the text shows its
// start and end.
func (p *Part) execute(ctx context.Context, c *commandTool, at place, call tool.Invocation) protocol.ToolOutput {
	end, err := p.begin()
	if err != nil {
		return protocol.Fail(protocol.FailUnavailable, "plugin_stopped", err.Error(), protocol.FromPlugin)
	}
	defer end()
	v, err := valuesOf(c.Parameters, call.Args)
	if err != nil {
		return protocol.Fail(protocol.FailInvalidRequest, "invalid_arguments", fmt.Sprintf("arguments of %s: %v", c.Name, err), protocol.FromTool)
	}
	cmd, box, release, err := p.toolCommand(ctx, c, at, v)
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
	found := box.Changes()
	switch {
	case err != nil && ctx.Err() != nil:
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "cancelled before the command ran"}
	case err != nil && exit == proc.Exit{}:
		return p.unavailable(c, cmd, err)
	}
	// The output of a cancelled command is stored too.
	text, ref := out.Result(context.WithoutCancel(ctx), p.reading)
	result := ending(exit, limit)
	result.Text, result.Artifact = text+result.Text+found, ref
	result.Value, err = json.Marshal(value{exit.Code, exit.Signal, out.Truncated(), exit.Escaped, time.Since(start).Milliseconds()})
	if err != nil {
		return protocol.Fail(protocol.FailInternal, "encode", err.Error(), protocol.FromTool)
	}
	return result
}

// toolCommand builds the command of a call. It runs in the workspace, or in the plugin's directory
// if the manifest says so. A shell tool gets its parameters as environment variables, never as part
// of the script, so values cannot inject code. The caller calls release after the start.
func (p *Part) toolCommand(ctx context.Context, c *commandTool, at place, v values) (cmd proc.Command, box *sandbox.Box, release func(), err error) {
	dir, env := at.cwd, maps.Clone(c.env)
	if c.In == manifest.InPlugin {
		dir = p.config.Root
	}
	cmd.Argv, cmd.Dir = c.command.fill(v), dir
	if c.Shell {
		cmd.Argv = []string{"sh", "-c", c.Command[0]}
		maps.Copy(env, v.environment())
	}
	env["PWD"] = dir
	box, release, err = p.prepare(ctx, &cmd, at, c.PassEnv, env)
	return cmd, box, release, err
}

// unavailable returns the output of a call whose command did not start. Its text tells the model
// that only the user can repair this.
func (p *Part) unavailable(c *commandTool, cmd proc.Command, err error) protocol.ToolOutput {
	if child.CodeOf(err) == child.Modified {
		return child.Failure(err, c.tool.Contract.Replay)
	}
	message := fmt.Sprintf("the tool %s cannot run: %v. The user must install %s or correct plugin.json of the plugin %s.",
		c.Name, err, cmd.Argv[0], p.config.ID)
	return protocol.Fail(protocol.FailUnavailable, "command_unavailable", message, protocol.FromTool)
}

// ending describes how a command ended, as a tool output. The text explains a timeout, a
// cancellation, a signal or a failing exit code; the command's output goes before it.
func ending(exit proc.Exit, limit time.Duration) protocol.ToolOutput {
	var out protocol.ToolOutput
	switch {
	case errors.Is(exit.Cause, errTimeout):
		out = protocol.Fail(protocol.FailTimeout, "timeout", fmt.Sprintf("the command was stopped after %s", limit), protocol.FromTool)
		out.Text = fmt.Sprintf("[Stopped after %s; the output above is incomplete.]\n", limit)
	case exit.Cause != nil:
		out = protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "[Cancelled; the output above is incomplete.]\n"}
	case exit.Signal != "":
		out = protocol.Fail(protocol.FailExecution, "signal", "the command was killed by "+exit.Signal, protocol.FromTool)
		out.Text = fmt.Sprintf("[Killed by %s.]\n", exit.Signal)
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
