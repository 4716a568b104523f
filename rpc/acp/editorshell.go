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

// errTooLong is the cancellation cause of a command that exceeds its time limit.
// Its text is part of the tool result.
var errTooLong = errors.New("the command timed out")

// killLimit bounds the requests that clean up a terminal after the call: kill,
// read its output, release.
const killLimit = 5 * time.Second

// runTerminal runs a command in a terminal of the editor, where the user sees its
// output live. It returns when the command has ended, and releases the terminal,
// of which the editor keeps the output on screen.
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
	c.setTerminal(ctx, id, made.TerminalId)
	wait := shellDefault
	if a.TimeoutMs > 0 {
		wait = time.Duration(a.TimeoutMs) * time.Millisecond
	}
	return t.wait(ctx, wait)
}

// terminal is a terminal that the editor created for one command.
type terminal struct {
	s  *ref
	id string
}

// wait waits until the command has ended and returns its output. If limit passes
// or ctx is cancelled, it kills the command and returns the output so far, as a
// timeout or a cancellation.
func (t terminal) wait(ctx context.Context, limit time.Duration) protocol.ToolOutput {
	waiting, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	p := sdk.WaitForTerminalExitRequest{SessionId: sdk.SessionId(t.s.id), TerminalId: t.id}
	exit, err := sdk.SendRequest[sdk.WaitForTerminalExitResponse](t.s.conn, waiting, sdk.ClientMethodTerminalWaitForExit, p)
	why := context.Cause(waiting)
	if err != nil && why == nil {
		return failed(ctx, "shell", err)
	}
	// Clean up even if the call was cancelled: the terminal belongs to the editor.
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
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

// kill stops the command. The terminal stays valid, so that its output can be
// read.
func (t terminal) kill(ctx context.Context) {
	p := sdk.KillTerminalRequest{SessionId: sdk.SessionId(t.s.id), TerminalId: t.id}
	if err := t.s.conn.SendRequestNoResult(ctx, sdk.ClientMethodTerminalKill, p); err != nil {
		t.s.Log.Warn("could not stop a command in the editor", "session", t.s.id, "error", err)
	}
}

// release tells the editor that the terminal is no longer needed. It works after
// ctx is done, because it must not leave terminals behind.
func (t terminal) release(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
	defer stop()
	p := sdk.ReleaseTerminalRequest{SessionId: sdk.SessionId(t.s.id), TerminalId: t.id}
	if err := t.s.conn.SendRequestNoResult(ctx, sdk.ClientMethodTerminalRelease, p); err != nil {
		t.s.Log.Debug("could not release a terminal of the editor", "session", t.s.id, "error", err)
	}
}

// exited is the structured value of the tool result, for clients and plugins; the
// model reads the text.
type exited struct {
	ExitCode  int    `json:"exitCode"` // -1 if a signal ended it
	Signal    string `json:"signal,omitempty"`
	Truncated bool   `json:"truncated"`
}

// outcomeOf turns the end of a command into a tool result. A command that exits
// with a nonzero code is a successful call: the model reads the code in the last
// line.
func outcomeOf(exit sdk.WaitForTerminalExitResponse, shown sdk.TerminalOutputResponse) protocol.ToolOutput {
	v := exited{ExitCode: -1, Signal: deref(exit.Signal), Truncated: shown.Truncated}
	if exit.ExitCode != nil {
		v.ExitCode = *exit.ExitCode
	}
	text := shown.Output
	if over := len(text) - maxOutput; over > 0 { // the editor ignored OutputByteLimit
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
	out.Value, _ = json.Marshal(v) // cannot fail
	return out
}
