package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/attachment"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// rendering builds a tool output from the pieces of a result.
type rendering struct {
	call     *tool.Invocation
	text     []string
	artifact *protocol.ArtifactRef // the first one
	files    []protocol.Attachment // artifacts that models read
}

// output returns the output of a successful call. Images, audio and binary resources are stored as
// artifacts, and the text refers to them. Images and PDF documents are also attached for the model. Structured content becomes the value, and the text if
// there is no other. A result that the server marks as an error is a failure.
func output(ctx context.Context, answer *sdk.CallToolResult, call *tool.Invocation) protocol.ToolOutput {
	r := &rendering{call: call}
	for _, c := range answer.Content {
		r.add(ctx, c)
	}
	value, err := json.Marshal(answer.StructuredContent)
	if err != nil || answer.StructuredContent == nil {
		value = nil
	}
	if len(r.text) == 0 && value != nil {
		r.text = append(r.text, string(value))
	}
	text := strings.ToValidUTF8(strings.Join(r.text, "\n"), "\uFFFD")
	out := protocol.Succeed(text)
	if answer.IsError {
		out = protocol.Fail(protocol.FailExecution, "mcp_tool_error", text, protocol.FromTool)
	}
	out.Value, out.Artifact, out.Attachments = value, r.artifact, r.files
	return out
}

// add renders one piece.
func (r *rendering) add(ctx context.Context, c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		r.text = append(r.text, c.Text)
	case *sdk.ImageContent:
		r.keep(ctx, "image", c.MIMEType, c.Data)
	case *sdk.AudioContent:
		r.keep(ctx, "audio", c.MIMEType, c.Data)
	case *sdk.ResourceLink:
		r.text = append(r.text, strings.TrimSpace(fmt.Sprintf("[resource %s %s] %s", c.URI, c.Name, c.Description)))
	case *sdk.EmbeddedResource:
		r.resource(ctx, c.Resource)
	default:
		r.text = append(r.text, fmt.Sprintf("[content of the unsupported type %T]", c))
	}
}

// resource renders an embedded resource.
func (r *rendering) resource(ctx context.Context, c *sdk.ResourceContents) {
	switch {
	case c == nil:
	case c.Blob != nil:
		r.keep(ctx, "resource "+c.URI, c.MIMEType, c.Blob)
	default:
		r.text = append(r.text, "[resource "+c.URI+"]\n"+c.Text)
	}
}

// keep stores bytes as an artifact of the session. If that fails, the text says so and the call
// still succeeds.
func (r *rendering) keep(ctx context.Context, what, mediaType string, data []byte) {
	ref, err := r.call.Host.WriteArtifact(ctx, mediaType, data)
	if err != nil {
		r.text = append(r.text, fmt.Sprintf("[%s, %s, %d bytes, not stored: %v]", what, mediaType, len(data), err))
		return
	}
	r.text = append(r.text, fmt.Sprintf("[%s, %s, %d bytes, artifact %s]", what, mediaType, ref.Size, ref.Digest))
	if r.artifact == nil {
		r.artifact = &ref
	}
	if kind := attachment.Type(data); kind != "" && kind != "text/plain" {
		r.files = append(r.files, protocol.Attachment{Name: cut(what, 200), Type: kind, Digest: ref.Digest})
	}
}
