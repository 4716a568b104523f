package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// errTooLong is the cause with which a command is stopped that took too long.
var errTooLong = errors.New("the command timed out")

// killPatience is how long the end of a command that was stopped is waited for.
const killPatience = 5 * time.Second

// runTerminal runs a command where the person sees it.
func (c *editorCalls) runTerminal(ctx context.Context, id sdk.ToolCallId, a editorArgs) protocol.ToolOutput {
	dir, no := c.inside(cmp.Or(a.Workdir, "."))
	if no != nil {
		return *no
	}
	limit := maxOutput
	made, err := sdk.SendRequest[sdk.CreateTerminalResponse](c.conn, ctx, sdk.ClientMethodTerminalCreate, sdk.CreateTerminalRequest{
		SessionId: sdk.SessionId(c.id), Command: "sh", Args: []string{"-c", a.Command}, Cwd: &dir, OutputByteLimit: &limit,
	})
	if err != nil {
		return failed(ctx, "shell", err)
	}
	t := terminal{&c.ref, made.TerminalId}
	defer t.release(ctx)
	c.inTerminal(ctx, id, made.TerminalId)
	wait := shellDefault
	if a.TimeoutMs > 0 {
		wait = time.Duration(a.TimeoutMs) * time.Millisecond
	}
	return t.wait(ctx, wait)
}

// terminal is one of the editor's.
type terminal struct {
	s  *ref
	id string
}

// wait waits until the command has ended, or stops it.
func (t terminal) wait(ctx context.Context, limit time.Duration) protocol.ToolOutput {
	waiting, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	p := sdk.WaitForTerminalExitRequest{SessionId: sdk.SessionId(t.s.id), TerminalId: t.id}
	exit, err := sdk.SendRequest[sdk.WaitForTerminalExitResponse](t.s.conn, waiting, sdk.ClientMethodTerminalWaitForExit, p)
	why := context.Cause(waiting)
	if err != nil && why == nil {
		return failed(ctx, "shell", err)
	}
	// What is left to do with the terminal is done also where nobody waits for the call any more.
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
	defer stop()
	if err != nil {
		t.kill(after)
	}
	shown, outputErr := sdk.SendRequest[sdk.TerminalOutputResponse](t.s.conn, after, sdk.ClientMethodTerminalOutput,
		sdk.TerminalOutputRequest{SessionId: sdk.SessionId(t.s.id), TerminalId: t.id})
	switch {
	case errors.Is(why, errTooLong) && err != nil:
		return protocol.Fail(protocol.FailTimeout, "timeout", shown.Output+"\n["+errTooLong.Error()+" and was stopped]", protocol.FromTool)
	case err != nil:
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: shown.Output + "\n[the command was stopped]"}
	case outputErr != nil:
		return failed(after, "read the output of the command", outputErr)
	}
	return outcomeOf(exit, shown)
}

func (t terminal) kill(ctx context.Context) {
	p := sdk.KillTerminalRequest{SessionId: sdk.SessionId(t.s.id), TerminalId: t.id}
	if err := t.s.conn.SendRequestNoResult(ctx, sdk.ClientMethodTerminalKill, p); err != nil {
		t.s.Log.Warn("could not stop a command in the editor", "session", t.s.id, "error", err)
	}
}

func (t terminal) release(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
	defer stop()
	p := sdk.ReleaseTerminalRequest{SessionId: sdk.SessionId(t.s.id), TerminalId: t.id}
	if err := t.s.conn.SendRequestNoResult(ctx, sdk.ClientMethodTerminalRelease, p); err != nil {
		t.s.Log.Debug("could not release a terminal of the editor", "session", t.s.id, "error", err)
	}
}

// exited is how a command has ended, for clients.
type exited struct {
	ExitCode  int    `json:"exitCode"` // -1 if a signal ended it
	Signal    string `json:"signal,omitempty"`
	Truncated bool   `json:"truncated"`
}

func outcomeOf(exit sdk.WaitForTerminalExitResponse, shown sdk.TerminalOutputResponse) protocol.ToolOutput {
	v := exited{ExitCode: -1, Signal: deref(exit.Signal), Truncated: shown.Truncated}
	if exit.ExitCode != nil {
		v.ExitCode = *exit.ExitCode
	}
	text := shown.Output
	if over := len(text) - maxOutput; over > 0 { // of an editor that does not keep to what it was asked for
		text, v.Truncated = strings.ToValidUTF8(text[over:], ""), true
	}
	if v.Truncated {
		text = "[The beginning of the output was dropped.]\n" + text
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	end := fmt.Sprintf("[Exit code %d.]\n", v.ExitCode)
	if v.Signal != "" {
		end = fmt.Sprintf("[Ended by %s.]\n", v.Signal)
	}
	out := protocol.Succeed(text + end)
	out.Value, _ = json.Marshal(v) // numbers and texts
	return out
}
