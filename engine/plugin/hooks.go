package plugin

import (
	"context"
	"encoding/json"
	"sync"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Every hook gets a context that ends with the turn, and what it may look at as values of its own: it may change them, and
// nobody sees that. A hook that panics has failed with that.

// View is a session as it is settled, with what a running turn has added so far. It is shared and never changes.
type View struct {
	Session protocol.Session `json:"session"`
	Window  int64            `json:"window,omitempty"` // tokens of the model's context; 0: not known

	TurnOptions *protocol.TurnOptions `json:"turnOptions,omitempty"` // of the protocol, as they hold in the turn or would in the next; nil: none

	messages func() []protocol.Message
}

// Holding is the view with messages: those of the active path, then more. They are put together once somebody asks for them,
// which most plugins never do.
func (v *View) Holding(past []*protocol.Message, more ...protocol.Message) *View {
	v.messages = sync.OnceValue(func() []protocol.Message {
		all := make([]protocol.Message, 0, len(past)+len(more))
		for _, m := range past {
			all = append(all, *m)
		}
		return append(all, more...)
	})
	return v
}

// Messages are those of the active path, then those of the turn.
func (v *View) Messages() []protocol.Message {
	if v.messages == nil {
		return nil
	}
	return v.messages()
}

// TurnContext is what the hooks before a turn know.
type TurnContext struct {
	TurnID protocol.TurnID       `json:"turnId"`
	View   *View                 `json:"view"`  // before the input
	Input  []protocol.Message    `json:"input"` // of this turn
	Inputs protocol.PluginInputs `json:"inputs,omitempty"`
	Host   Capabilities          `json:"-"`
}

// CheckpointContext is what a checkpoint hook knows.
type CheckpointContext struct {
	TurnID protocol.TurnID   `json:"turnId"`
	Kind   protocol.Boundary `json:"kind"`
	View   *View             `json:"view"` // without what is delivered now
	Host   Capabilities      `json:"-"`
}

// TurnSummary is what a turn came to.
type TurnSummary struct {
	TurnID  protocol.TurnID      `json:"turnId"`
	Report  *protocol.TurnReport `json:"report"`
	Window  int64                `json:"window,omitempty"`  // tokens of the model's context; 0: not known
	Context int64                `json:"context,omitempty"` // tokens that the conversation takes of it by now; a guess, where the model does not tell
	Host    Capabilities         `json:"-"`
}

// ToolCallContext is a call that is about to run.
type ToolCallContext struct {
	TurnID protocol.TurnID   `json:"turnId"`
	CallID protocol.CallID   `json:"callId"`
	Parent protocol.CallID   `json:"parent,omitempty"` // the call that makes this one; empty: the model does
	Tool   string            `json:"tool"`
	Kind   protocol.ToolKind `json:"kind,omitempty"`   // that the call is judged by: what a client says of its tool makes nothing laxer
	Replay protocol.Replay   `json:"replay,omitempty"` // of the tool's contract: whether a call may be made again
	Serial bool              `json:"serial,omitempty"` // the call does not run beside others
	Args   json.RawMessage   `json:"args"`             // as they are now; they may not fit the tool's schema
	Host   Capabilities      `json:"-"`
}

// ToolResultContext is a call that has run, or one attempt of it.
type ToolResultContext struct {
	ToolCallContext
	Attempt    int                 `json:"attempt"`
	Output     protocol.ToolOutput `json:"output"`
	DurationMs int64               `json:"durationMs"`
}

// TurnHook acts at a turn seam: before the turn.
type TurnHook func(context.Context, *TurnContext) ([]Directive, error)

// CheckpointHook acts at a checkpoint.
type CheckpointHook func(context.Context, *CheckpointContext) ([]Directive, error)

// AfterTurnHook acts when a turn is assembled, before it is committed.
type AfterTurnHook func(context.Context, *TurnSummary) ([]Directive, error)

// ToolCallHook acts before a call.
type ToolCallHook func(context.Context, *ToolCallContext) ([]Directive, error)

// ToolResultHook acts after a call.
type ToolResultHook func(context.Context, *ToolResultContext) ([]Directive, error)

// StreamChunk is a piece of visible text on its way to observers.
type StreamChunk struct {
	Text      string         `json:"text"`
	Reasoning []string       `json:"reasoning,omitempty"` // further reasoning to show
	Events    []RuntimeEvent `json:"events,omitempty"`    // for observers
	Abort     bool           `json:"abort,omitempty"`     // the reply has said enough: it is stopped here
}

// StreamHook changes text while it comes in; its output is the next hook's input.
type StreamHook func(context.Context, StreamChunk) (StreamChunk, error)

// Response is a complete reply of the model.
type Response struct {
	Parts  []protocol.Part     `json:"parts"`
	Stop   protocol.StopReason `json:"stop,omitempty"`
	Events []RuntimeEvent      `json:"events,omitempty"`
}

// ResponseHook changes a complete reply. It is a pure function: it may be called again for the same reply.
type ResponseHook func(context.Context, Response) (Response, error)

// StreamEnd is why a stream ended.
type StreamEnd string

const (
	StreamComplete      StreamEnd = "complete"
	StreamAborted       StreamEnd = "aborted" // by a stream hook
	StreamCancelled     StreamEnd = "cancelled"
	StreamProviderError StreamEnd = "providerError"
	StreamAttemptReset  StreamEnd = "attemptReset" // the provider tries again: what came so far is void
)

// StreamEndHook releases what was kept for a stream.
type StreamEndHook func(context.Context, StreamEnd) error

// ResultProjector decides what of a tool's output enters the conversation. The record of the call keeps the output.
type ResultProjector func(ctx context.Context, call *ToolResultContext) (protocol.ToolOutput, error)

// LifecycleKind names something that has happened to a session.
type LifecycleKind string

const (
	TurnFinalized        LifecycleKind = "turnFinalized" // assembled, not committed
	TurnPersisted        LifecycleKind = "turnPersisted" // committed
	SessionRestored      LifecycleKind = "sessionRestored"
	SessionConfigChanged LifecycleKind = "sessionConfigChanged"
)

// LifecycleEvent is a fact that plugins may react to and cannot change. Kind tells which fields are set.
type LifecycleEvent struct {
	Kind     LifecycleKind        `json:"kind"`
	Report   *protocol.TurnReport `json:"report,omitempty"`   // of both turn events
	View     *View                `json:"view,omitempty"`     // of turnPersisted and sessionRestored
	Previous *protocol.Config     `json:"previous,omitempty"` // of sessionConfigChanged
	Current  *protocol.Config     `json:"current,omitempty"`
	Host     Capabilities         `json:"-"`
}

// LifecycleHook is told of events. All hooks of an event run at once, and are waited for.
type LifecycleHook func(context.Context, *LifecycleEvent) error

// ConfigChange is a change of a session's settings. Every mutator sees the same Previous and Current, and Config as the one
// before it left it.
type ConfigChange struct {
	Previous protocol.Config `json:"previous"`
	Current  protocol.Config `json:"current"`
	Config   protocol.Config `json:"config"`
	Host     Capabilities    `json:"-"`
}

// ConfigMutator gives the settings as they shall be.
type ConfigMutator func(context.Context, *ConfigChange) (protocol.Config, error)

// PromptContext is what a prompt contributor knows.
type PromptContext struct {
	TurnID protocol.TurnID       `json:"turnId"`
	View   *View                 `json:"view"`
	Inputs protocol.PluginInputs `json:"inputs,omitempty"`
	Host   Capabilities          `json:"-"`
}

// PromptHook contributes to the system prompt of an iteration.
type PromptHook func(context.Context, *PromptContext) ([]Prompt, error)

// ContextView is the conversation as the model is to see it.
type ContextView struct {
	View *View        `json:"view"`
	Host Capabilities `json:"-"`
}

// PreparedContext is what goes into a turn: it is shown to the model and never becomes history.
type PreparedContext struct {
	Messages    []protocol.Message `json:"messages"` // the history before the turn, as the model is to see it
	Prompts     []Prompt           `json:"prompts,omitempty"`
	Tools       []tool.Source      `json:"-"`
	WithoutBase bool               `json:"withoutBase,omitempty"` // the session's own tools are left out
}

// ContextTransform changes what the model sees in one turn; its output is the next one's input.
type ContextTransform func(context.Context, *ContextView, PreparedContext) (PreparedContext, error)

// CompactRequest asks for a summary of history.
type CompactRequest struct {
	View         *View        `json:"view"`
	Instructions string       `json:"instructions,omitempty"`
	Unasked      bool         `json:"unasked,omitempty"` // a plugin wants it, not a client
	Host         Capabilities `json:"-"`
}

// Compactor summarises history into nodes for a new frame; none: it leaves it to the next compactor.
type Compactor func(context.Context, *CompactRequest) ([]protocol.NodeBody, error)

// CatalogContext is what a catalog contributor knows: every tool, filtered by nobody.
type CatalogContext struct {
	SessionID protocol.SessionID      `json:"sessionId,omitempty"`
	Manifests []protocol.ToolManifest `json:"manifests"`
	Authority protocol.Authority      `json:"authority"`
}

// CatalogHook names tools to be left out of the catalog. It is asked when a catalog is made, which sessions wait for. What it
// goes by, other than its arguments, must change the plugin's revision; or else the names come with tool.ErrForNow.
type CatalogHook func(context.Context, *CatalogContext) (remove []string, err error)

// ProseProjector hides the protocol's markup from text that a person sees. It is a pure function.
type ProseProjector func(ctx context.Context, text string) (string, error)
