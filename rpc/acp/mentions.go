package acp

import (
	"context"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/mcpinput"
	"lashd/rpc/protocol"
)

// writtenText returns the text blocks of a prompt, as lines. Links and embedded files do not belong to it: the person did not write
// their text to the agent, so it mentions nothing.
func writtenText(blocks []sdk.ContentBlock) string {
	var all []string
	for _, b := range blocks {
		if b.Text != nil {
			all = append(all, b.Text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// mentioned returns the resources of the session's MCP servers that a prompt mentions. It asks the servers only if the text may mention one.
// A prompt that the editor cancels before the servers answer mentions none: start answers it.
func (p *prompts) mentioned(ctx context.Context, pr *prompt, blocks []sdk.ContentBlock) ([]protocol.ResourceMention, error) {
	text := writtenText(blocks)
	if !mcpinput.Mentions(text) {
		return nil, nil
	}
	defer context.AfterFunc(ctx, func() { _ = p.requestEnded(ctx, pr) })() // a request that is withdrawn is cancelled
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	p.stopWith(pr, stop)
	var known protocol.MCPResourcesResult
	err := p.daemon.call(ctx, "mcp/resources", protocol.MCPResourcesParams{SessionID: p.id}, &known)
	if p.wasCancelled(pr) {
		return nil, nil
	}
	return mcpinput.Resources(text, &known), err
}

// stopWith sets the function that ends the present step of a prompt when the editor cancels it, and calls it if that has happened.
func (p *prompts) stopWith(pr *prompt, stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pr.stop = stop
	if pr.cancelled {
		stop()
	}
}

// wasCancelled reports whether the editor has cancelled a prompt.
func (p *prompts) wasCancelled(pr *prompt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return pr.cancelled
}
