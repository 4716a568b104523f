package acp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

func TestToolsAfterAFailedChange(t *testing.T) {
	shell := protocol.ClientTool{ToolManifest: protocol.ToolManifest{Name: "shell", Kind: protocol.ToolKindExecute}}
	read := protocol.ClientTool{ToolManifest: protocol.ToolManifest{Name: "read", Kind: protocol.ToolKindRead}}
	o := &overlay{ref: ref{agent: &agent{Config: Config{Log: slog.New(slog.DiscardHandler)}}}, additions: additions{tools: []protocol.ClientTool{read, shell}}}
	var sent [][]string
	fails := errors.New("lost")
	call := func(_ context.Context, _ string, params, _ any) error {
		var names []string
		for _, t := range params.(protocol.SessionOverlayParams).Tools {
			names = append(names, t.Name)
		}
		sent = append(sent, names)
		return fails
	}
	inSandbox := protocol.Config{Approval: protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}}
	for _, fails = range []error{errors.New("lost"), nil, nil} {
		o.follow(t.Context(), call, inSandbox)
	}
	if want := [][]string{{"read"}, {"read"}}; !slices.EqualFunc(sent, want, slices.Equal) {
		t.Errorf("part11/8 a change of the tools that fails first was sent as %q, want %q: again, and only until it succeeds", sent, want)
	}
}
