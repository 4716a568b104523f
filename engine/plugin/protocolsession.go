package plugin

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/rpc/protocol"
)

// ProtocolSession is what a protocol plugin does over the life of a session. What is absent does nothing, except that
// session extensions are rejected, and turn extensions accepted.
type ProtocolSession struct {
	// Initialize is called once when the session is opened, before anything is restored.
	Initialize func(context.Context, protocol.SessionID) error
	// Restore is called after plugin state was restored, after each committed switch of frames, and when nodes that
	// AppendNodes has taken did not become history.
	Restore func(context.Context, *View) error
	// AppendNodes is told of nodes that others than the session's turns are about to add to its history. An error keeps them
	// out of it. Like the Restore that may follow, it may run beside a turn.
	AppendNodes func(context.Context, []protocol.NodeBody) error
	// ApplyExtension takes what a client sends to the protocol.
	ApplyExtension func(context.Context, json.RawMessage) error
	// ValidateTurn looks at the options that a client sends with a turn, before the turn is accepted.
	ValidateTurn func(context.Context, *protocol.TurnOptions) error
	// Materialize is called whenever the session is opened, new or not; it gives the options to record.
	Materialize func(context.Context, *Materialization) (*Materialized, error)
	// BeforeModel is called before each model call. A switch ends the turn without the call.
	BeforeModel func(context.Context, *BeforeModel) (*protocol.FrameSwitch, error)
}

// Materialization is a session that is being opened.
type Materialization struct {
	SessionID protocol.SessionID
	Root      bool                  // it works for nobody
	Options   json.RawMessage       // of the plugin, from the session's configuration
	Recorded  *protocol.TurnOptions // for the current frame; nil: none
}

// Materialized are the turn options of a session from now on.
type Materialized struct {
	Options   protocol.TurnOptions
	AllFrames bool // not only of the current frame, and of those that open from it
}

// BeforeModel is a model call that is about to be made.
type BeforeModel struct {
	TurnID protocol.TurnID
	View   *View
	Host   Capabilities
}

// ErrExtension means that a session's protocol takes no extensions.
var ErrExtension = errors.New("it takes no extensions")

// Protocol is the protocol session, whether or not a plugin has registered one.
func (s *Session) Protocol() Protocol {
	if s.protocol == nil {
		return Protocol{plugins: s.roster, plugin: s.contributions.driver.plugin}
	}
	return Protocol{s.roster, s.protocol.plugin, s.protocol.do}
}

// Protocol calls the callbacks of a protocol session.
type Protocol struct {
	plugins   *roster
	plugin    string
	callbacks ProtocolSession
}

// Initialize begins the session.
func (p Protocol) Initialize(ctx context.Context, id protocol.SessionID) error {
	return callback(ctx, p, p.callbacks.Initialize, id)
}

// Restore follows a restored state.
func (p Protocol) Restore(ctx context.Context, v *View) error {
	return callback(ctx, p, p.callbacks.Restore, v)
}

// Appends tells whether anybody wants to know of nodes that are added.
func (p Protocol) Appends() bool { return p.callbacks.AppendNodes != nil }

// AppendNodes tells of nodes that are about to be added.
func (p Protocol) AppendNodes(ctx context.Context, nodes []protocol.NodeBody) error {
	return callback(ctx, p, p.callbacks.AppendNodes, own(nodes))
}

// ApplyExtension applies what a client sent.
func (p Protocol) ApplyExtension(ctx context.Context, x json.RawMessage) error {
	if p.callbacks.ApplyExtension == nil {
		return ErrExtension
	}
	return callback(ctx, p, p.callbacks.ApplyExtension, own(x))
}

// ValidateTurn checks what a client sent with a turn.
func (p Protocol) ValidateTurn(ctx context.Context, o *protocol.TurnOptions) error {
	return callback(ctx, p, p.callbacks.ValidateTurn, own(o))
}

// Materialize gives the options to record; nil: those that are recorded.
func (p Protocol) Materialize(ctx context.Context, m *Materialization) (*Materialized, error) {
	if p.callbacks.Materialize == nil {
		return nil, nil
	}
	return invoke(ctx, p.plugins, HookProtocol, p.plugin, func() (*Materialized, error) {
		made, err := p.callbacks.Materialize(ctx, own(m))
		if err == nil {
			err = made.check()
		}
		return own(made), err
	})
}

// Switches tells whether anybody wants to be asked before model calls.
func (p Protocol) Switches() bool { return p.callbacks.BeforeModel != nil }

// BeforeModel asks for a switch of frames; nil: the call is made.
func (p Protocol) BeforeModel(ctx context.Context, b *BeforeModel) (*protocol.FrameSwitch, error) {
	if p.callbacks.BeforeModel == nil {
		return nil, nil
	}
	mine := *b
	mine.Host = b.Host.limit(HookBeforeModel)
	return invoke(ctx, p.plugins, HookBeforeModel, p.plugin, func() (*protocol.FrameSwitch, error) { return p.callbacks.BeforeModel(ctx, &mine) })
}

func callback[T any](ctx context.Context, p Protocol, f func(context.Context, T) error, v T) error {
	if f == nil {
		return nil
	}
	_, err := invoke(ctx, p.plugins, HookProtocol, p.plugin, func() (struct{}, error) { return struct{}{}, f(ctx, v) })
	return err
}
