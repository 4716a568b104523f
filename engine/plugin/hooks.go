package plugin

import (
	"context"
	"encoding/json"
	"sync"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Every hook gets a context that ends with the turn. Its arguments are copies, unless a type says that it is shared: changes
// to them have no effect. A panic counts as a failure of the hook, see PanicError.

// View is the committed state of a session plus what a running turn has added so far. It is shared between hooks and
// must not be modified.
type View struct {
	Session protocol.Session `json:"session"`
	// Window is the size of the model's context in tokens; 0: unknown.
	Window int64 `json:"window,omitempty"`
	// ModelName is the name of the session's model, with which CompletionService calls it; empty: the configuration no longer has it.
	ModelName string `json:"modelName,omitempty"`

	// TurnOptions are the protocol's options of the running turn, or of the next turn if none runs; nil: none.
	TurnOptions *protocol.TurnOptions `json:"turnOptions,omitempty"`

	// messages builds the list on first use; nil: the view has none.
	messages func() []protocol.Message
}

// WithMessages gives the view its messages: those of the active path, then more. The list is built when Messages is first
// called, because most plugins never need it. Call WithMessages before the view is shared.
func (v *View) WithMessages(past []*protocol.Message, more ...protocol.Message) *View {
	v.messages = sync.OnceValue(func() []protocol.Message {
		all := make([]protocol.Message, 0, len(past)+len(more))
		for _, m := range past {
			all = append(all, *m)
		}
		return append(all, more...)
	})
	return v
}

// Messages returns the messages of the active path, then those of the turn. The slice is shared and must not be
// modified.
func (v *View) Messages() []protocol.Message {
	if v.messages == nil {
		return nil
	}
	return v.messages()
}

// TurnContext is the argument of hooks that run before a turn.
type TurnContext struct {
	TurnID protocol.TurnID       `json:"turnId"`
	View   *View                 `json:"view"`             // the session before the input
	Input  []protocol.Message    `json:"input"`            // the input of this turn
	Inputs protocol.PluginInputs `json:"inputs,omitempty"` // turn inputs that plugins declared
	Host   Capabilities          `json:"-"`
}

// CheckpointContext is the argument of checkpoint hooks.
type CheckpointContext struct {
	TurnID protocol.TurnID   `json:"turnId"`
	Kind   protocol.Boundary `json:"kind"` // which boundary of the turn this is
	View   *View             `json:"view"` // without the inputs that this checkpoint delivers
	Host   Capabilities      `json:"-"`
}

// TurnSummary describes a finished turn before its commit.
type TurnSummary struct {
	TurnID  protocol.TurnID      `json:"turnId"`
	Report  *protocol.TurnReport `json:"report"`
	Window  int64                `json:"window,omitempty"`  // size of the model's context in tokens; 0: unknown
	Context int64                `json:"context,omitempty"` // tokens of it in use now; estimated if the model does not report them
	Host    Capabilities         `json:"-"`
}

// ToolCallContext describes a tool call that is about to run.
type ToolCallContext struct {
	TurnID protocol.TurnID `json:"turnId"`
	CallID protocol.CallID `json:"callId"`
	Parent protocol.CallID `json:"parent,omitempty"` // the call that made this call; empty: the model made it
	Tool   string          `json:"tool"`
	// Kind is the kind that approval uses. A client cannot make approval laxer by declaring a harmless kind for its
	// tool.
	Kind   protocol.ToolKind     `json:"kind,omitempty"`
	Replay protocol.Replay       `json:"replay,omitempty"` // from the tool's contract: whether the call may run again after a crash
	Serial bool                  `json:"serial,omitempty"` // the call does not run in parallel with others
	Cell   bool                  `json:"cell,omitempty"`   // a code cell makes the call, and its code reads the output instead of the model
	Args   json.RawMessage       `json:"args"`             // current arguments; they may not match the tool's schema
	Inputs protocol.PluginInputs `json:"-"`                // inputs of plugins that came with the turn's input; shared, and only for built-in plugins
	Entry  *tool.Entry           `json:"-"`                // the tool, for its subjects; only for hooks in this process. Nil: unknown
	Host   Capabilities          `json:"-"`
}

// ToolResultContext describes one finished attempt of a tool call.
type ToolResultContext struct {
	ToolCallContext
	Attempt    int                 `json:"attempt"` // 1, 2, ...
	Output     protocol.ToolOutput `json:"output"`
	DurationMs int64               `json:"durationMs"` // duration of the attempt in milliseconds
}

// TurnHook runs before a turn starts. Its directives are applied before the first model call.
type TurnHook func(context.Context, *TurnContext) ([]Directive, error)

// CheckpointHook runs at a checkpoint of a turn.
type CheckpointHook func(context.Context, *CheckpointContext) ([]Directive, error)

// AfterTurnHook runs when a turn has ended, before its commit. It cannot abort the turn any more.
type AfterTurnHook func(context.Context, *TurnSummary) ([]Directive, error)

// ToolCallHook runs before a tool call. It may run a second time with replaced arguments, see BeforeToolCall.
type ToolCallHook func(context.Context, *ToolCallContext) ([]Directive, error)

// ToolResultHook runs after each attempt of a tool call. It may run a second time with a replaced result, see
// AfterToolCall.
type ToolResultHook func(context.Context, *ToolResultContext) ([]Directive, error)

// StreamChunk is a piece of visible text on its way to observers.
type StreamChunk struct {
	Text      string         `json:"text"`
	Reasoning []string       `json:"reasoning,omitempty"` // more reasoning to show to observers
	Events    []RuntimeEvent `json:"events,omitempty"`    // events for observers
	Abort     bool           `json:"abort,omitempty"`     // stop the reply after this chunk
}

// StreamHook changes text while it streams in. Its output is the input of the next hook.
type StreamHook func(context.Context, StreamChunk) (StreamChunk, error)

// Response is a complete reply of the model.
type Response struct {
	Parts  []protocol.Part     `json:"parts"`
	Stop   protocol.StopReason `json:"stop,omitempty"`
	Events []RuntimeEvent      `json:"events,omitempty"`
}

// ResponseHook changes a complete reply. It must be a pure function: lashd may call it again for the same reply.
type ResponseHook func(context.Context, Response) (Response, error)

// StreamEnd is the reason why a stream ended.
type StreamEnd string

const (
	StreamComplete      StreamEnd = "complete"
	StreamAborted       StreamEnd = "aborted" // by a stream hook
	StreamCancelled     StreamEnd = "cancelled"
	StreamProviderError StreamEnd = "providerError"
	StreamAttemptReset  StreamEnd = "attemptReset" // the provider retries: discard the text received so far
)

// StreamEndHook runs when a stream ends. Plugins release per-stream state here.
type StreamEndHook func(context.Context, StreamEnd) error

// ResultProjector returns the part of a tool's output that enters the conversation. The record of the call keeps the
// full output.
type ResultProjector func(ctx context.Context, call *ToolResultContext) (protocol.ToolOutput, error)

// LifecycleKind names an event in the life of a session.
type LifecycleKind string

const (
	TurnFinalized        LifecycleKind = "turnFinalized" // ended, not committed
	TurnPersisted        LifecycleKind = "turnPersisted" // committed
	SessionRestored      LifecycleKind = "sessionRestored"
	SessionConfigChanged LifecycleKind = "sessionConfigChanged"
)

// LifecycleEvent reports something that has happened to a session. Hooks can react to it but not change it. Kind
// selects which fields are set.
type LifecycleEvent struct {
	Kind     LifecycleKind        `json:"kind"`
	Report   *protocol.TurnReport `json:"report,omitempty"`   // of both turn events
	View     *View                `json:"view,omitempty"`     // of turnPersisted and sessionRestored
	Previous *protocol.Config     `json:"previous,omitempty"` // of sessionConfigChanged
	Current  *protocol.Config     `json:"current,omitempty"`
	Host     Capabilities         `json:"-"`
}

// LifecycleHook receives lifecycle events. All hooks of an event run in parallel, and the engine waits for all of them.
type LifecycleHook func(context.Context, *LifecycleEvent) error

// ConfigChange is a change of a session's settings. All mutators see the same Previous and Current; Config carries the
// result of the mutators before.
type ConfigChange struct {
	Previous protocol.Config `json:"previous"`
	Current  protocol.Config `json:"current"`
	Config   protocol.Config `json:"config"`
	Host     Capabilities    `json:"-"`
}

// ConfigMutator returns the settings that the session should use instead of Config.
type ConfigMutator func(context.Context, *ConfigChange) (protocol.Config, error)

// PromptContext is the argument of prompt hooks.
type PromptContext struct {
	TurnID protocol.TurnID       `json:"turnId"`
	View   *View                 `json:"view"`
	Inputs protocol.PluginInputs `json:"inputs,omitempty"`
	Host   Capabilities          `json:"-"`
}

// PromptHook returns contributions to the system prompt. It runs before every model call of a turn.
type PromptHook func(context.Context, *PromptContext) ([]Prompt, error)

// ContextView is the argument of context transforms and shows the whole session.
type ContextView struct {
	View *View        `json:"view"`
	Host Capabilities `json:"-"`
}

// PreparedContext is what the model sees in one turn. It is never stored in the history.
type PreparedContext struct {
	Messages    []protocol.Message `json:"messages"` // the history before the turn, as the model sees it
	Prompts     []Prompt           `json:"prompts,omitempty"`
	Tools       []tool.Source      `json:"-"`                     // additional tools for this turn
	WithoutBase bool               `json:"withoutBase,omitempty"` // hides the session's own tools
}

// ContextTransform changes what the model sees in one turn. Its output is the input of the next transform.
type ContextTransform func(context.Context, *ContextView, PreparedContext) (PreparedContext, error)

// CompactRequest asks for a summary of the history.
type CompactRequest struct {
	View         *View        `json:"view"`
	Instructions string       `json:"instructions,omitempty"` // from the client: what to keep; empty: no wishes
	Unasked      bool         `json:"unasked,omitempty"`      // a plugin requested it, not a client
	Host         Capabilities `json:"-"`
}

// Compactor summarizes the history into the nodes of a new frame. Returning none passes the request to the next
// compactor.
type Compactor func(context.Context, *CompactRequest) ([]protocol.NodeBody, error)

// CatalogContext is the argument of catalog hooks. Manifests lists every tool, before any filter.
type CatalogContext struct {
	SessionID protocol.SessionID      `json:"sessionId,omitempty"`
	Manifests []protocol.ToolManifest `json:"manifests"`
	Authority protocol.Authority      `json:"authority"`
}

// CatalogHook returns the names of tools to leave out of the catalog. It runs while a catalog is built, which sessions
// wait for, so it should be fast. If the result depends on anything besides the arguments, a change of that must change
// the plugin's revision. Otherwise return the names with tool.ErrForNow, which keeps the catalog from being cached.
type CatalogHook func(context.Context, *CatalogContext) (remove []string, err error)

// ProseProjector hides the markup of the protocol from text that a person reads. It must be a pure function.
type ProseProjector func(ctx context.Context, text string) (string, error)
