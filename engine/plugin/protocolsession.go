package plugin

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// ProtocolSession is what a protocol plugin does over the life of a session. What is absent does nothing, except that
// session extensions are rejected, and turn extensions accepted.
type ProtocolSession struct {
	// Initialize is called once when the session is opened, before anything is restored.
	Initialize func(context.Context, protocol.SessionID) error
	// Restore is called after plugin state was restored, and after each committed switch of frames.
	Restore func(context.Context, *View) error
	// AppendNodes is told of nodes that others than the session's turns add to its history.
	AppendNodes func(context.Context, []protocol.NodeBody) error
	// ApplyExtension takes what a client sends to the protocol.
	ApplyExtension func(context.Context, json.RawMessage) error
	// ValidateTurn looks at what a client sends to the protocol with a turn.
	ValidateTurn func(context.Context, json.RawMessage) error
	// Materialize is called whenever the session is opened, new or not; it gives the options to record.
	Materialize func(context.Context, *Materialization) (*TurnOptions, error)
	// BeforeModel is called before each model call. A switch ends the turn without the call.
	BeforeModel func(context.Context, *BeforeModel) (*protocol.FrameSwitch, error)
}

// Materialization is a session that is being opened.
type Materialization struct {
	SessionID protocol.SessionID
	Root      bool // it works for nobody
	Options   json.RawMessage
	Recorded  *TurnOptions // of the current frame; nil: none
}

// TurnOptions are settings of the protocol, for one frame or all.
type TurnOptions struct {
	SchemaVersion int             `json:"schemaVersion"`
	Payload       json.RawMessage `json:"payload"`
	AllFrames     bool            `json:"-"`
}

// BeforeModel is a model call that is about to be made.
type BeforeModel struct {
	TurnID protocol.TurnID
	View   *View
	Host   Capabilities
}

// ErrExtension means that a session's protocol takes no extensions.
var ErrExtension = errors.New("the session's protocol takes no extensions")

// Protocol is the protocol session, whether or not a plugin has registered one.
func (s *Session) Protocol() Protocol {
	if s.protocol == nil {
		return Protocol{plugin: s.contributions.driver.plugin}
	}
	return Protocol{s.protocol.plugin, s.protocol.do}
}

// Protocol calls the callbacks of a protocol session.
type Protocol struct {
	plugin    string
	callbacks ProtocolSession
}

// Initialize begins the session.
func (p Protocol) Initialize(ctx context.Context, id protocol.SessionID) error {
	return callback(ctx, p.plugin, p.callbacks.Initialize, id)
}

// Restore follows a restored state.
func (p Protocol) Restore(ctx context.Context, v *View) error {
	return callback(ctx, p.plugin, p.callbacks.Restore, v)
}

// AppendNodes follows nodes that were added.
func (p Protocol) AppendNodes(ctx context.Context, nodes []protocol.NodeBody) error {
	return callback(ctx, p.plugin, p.callbacks.AppendNodes, own(nodes))
}

// ApplyExtension applies what a client sent.
func (p Protocol) ApplyExtension(ctx context.Context, x json.RawMessage) error {
	if p.callbacks.ApplyExtension == nil {
		return ErrExtension
	}
	return callback(ctx, p.plugin, p.callbacks.ApplyExtension, own(x))
}

// ValidateTurn checks what a client sent with a turn.
func (p Protocol) ValidateTurn(ctx context.Context, x json.RawMessage) error {
	return callback(ctx, p.plugin, p.callbacks.ValidateTurn, own(x))
}

// Materialize gives the options to record; nil: those that are recorded.
func (p Protocol) Materialize(ctx context.Context, m *Materialization) (*TurnOptions, error) {
	if p.callbacks.Materialize == nil {
		return nil, nil
	}
	return invoke(ctx, HookProtocol, p.plugin, func() (*TurnOptions, error) { return p.callbacks.Materialize(ctx, own(m)) })
}

// BeforeModel asks for a switch of frames; nil: the call is made.
func (p Protocol) BeforeModel(ctx context.Context, b *BeforeModel) (*protocol.FrameSwitch, error) {
	if p.callbacks.BeforeModel == nil {
		return nil, nil
	}
	mine := *b
	mine.Host = b.Host.limit(HookBeforeModel)
	return invoke(ctx, HookBeforeModel, p.plugin, func() (*protocol.FrameSwitch, error) { return p.callbacks.BeforeModel(ctx, &mine) })
}

func callback[T any](ctx context.Context, plugin string, f func(context.Context, T) error, v T) error {
	if f == nil {
		return nil
	}
	_, err := invoke(ctx, HookProtocol, plugin, func() (struct{}, error) { return struct{}{}, f(ctx, v) })
	return err
}

// CodeCall is a code cell.
type CodeCall struct {
	TurnID       protocol.TurnID
	Language     string
	Source       string
	AcceptFinish bool
}

// CodeExecutor runs code cells. What it keeps between cells survives if it implements ExecutionState.
type CodeExecutor interface {
	Execute(context.Context, *CodeCall) (turn.CellReply, error)
}

// ExecutionState is a CodeExecutor whose state is stored with the session.
type ExecutionState interface {
	Dirty() bool // since it was stored or restored
	Snapshot(context.Context) ([]byte, error)
	Restore(context.Context, []byte) error
}

// ErrNoExecutor means that no plugin of a session runs code.
var ErrNoExecutor = errors.New("code execution is unavailable")

// Execute runs a code cell.
func (s *Session) Execute(ctx context.Context, call *CodeCall) (turn.CellReply, error) {
	if s.executor == nil {
		return turn.CellReply{}, ErrNoExecutor
	}
	return invoke(ctx, HookExecutor, s.executor.plugin, func() (turn.CellReply, error) { return s.executor.do.Execute(ctx, own(call)) })
}

// ExecutionState is that of the code executor, if it has one that is stored.
func (s *Session) ExecutionState() (ExecutionState, bool) {
	if s.executor == nil {
		return nil, false
	}
	x, ok := s.executor.do.(ExecutionState)
	return x, ok
}
