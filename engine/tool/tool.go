// Package tool is the behaviour of tools: what can be called, from which source, in which generation, and what the
// model sees of it. It runs nothing by itself.
package tool

import (
	"context"
	"encoding/json"

	"lashd/rpc/protocol"
)

// Tool is a manifest and a contract: what the model is told, and what lashd must know.
type Tool struct {
	Manifest protocol.ToolManifest
	Contract protocol.ToolContract
}

// Provider is a source of tools. Tools is cheap and does no IO; it may answer differently after the provider said so
// through its host. Execute is called with arguments that fit the manifest's schema, from several goroutines at once
// unless the contract says serial; it returns soon after ctx is done. What goes wrong is part of the output, with a
// class and a code; an error means that the provider itself failed.
type Provider interface {
	Tools() []Tool
	Execute(ctx context.Context, call Invocation) (Result, error)
}

// Invocation is one attempt of one call.
type Invocation struct {
	SessionID protocol.SessionID
	TurnID    protocol.TurnID
	CallID    protocol.CallID // the same for each attempt: an idempotency key
	Attempt   int             // 1, 2, ...
	Name      string
	Args      json.RawMessage
	Host      Host
}

// Host is what a tool may ask of lashd while its call runs.
type Host interface {
	// Progress shows a piece of output to whoever watches. It never blocks for long and is not durable.
	Progress(text string)
	// WriteArtifact keeps bytes that are too many for the conversation. The limit is 64 MiB.
	WriteArtifact(ctx context.Context, mediaType string, data []byte) (protocol.ArtifactRef, error)
	// Touch tells that a workspace file is about to be changed, before it is.
	Touch(ctx context.Context, path string) error
}

// Result is what an attempt came to.
type Result struct {
	Output  protocol.ToolOutput
	Control *protocol.ToolControl // counts only if Output is a success
}
