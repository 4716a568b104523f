package plugin

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/rpc/protocol"
)

// ProtocolSession holds the callbacks of a protocol plugin over the life of a session. A nil callback does nothing,
// with one exception: without ApplyExtension, session extensions are rejected with ErrExtension.
type ProtocolSession struct {
	// Initialize is called once when the session opens, before anything is restored.
	Initialize func(context.Context, protocol.SessionID) error
	// Restore is called after plugin state was restored, after each committed switch of frames, and when nodes that
	// AppendNodes has accepted did not become history.
	Restore func(context.Context, *View) error
	// AppendNodes is called before nodes are added to the history from outside of the session's turns. An error rejects
	// the nodes. Like the Restore that may follow, it may run in parallel with a turn.
	AppendNodes func(context.Context, []protocol.NodeBody) error
	// ApplyExtension handles data that a client sends to the protocol.
	ApplyExtension func(context.Context, json.RawMessage) error
	// ValidateTurn checks the options that a client sends with a turn. An error rejects the turn.
	ValidateTurn func(context.Context, *protocol.TurnOptions) error
	// Materialize is called whenever the session opens, new or not. It returns the turn options to record; nil keeps
	// the recorded ones.
	Materialize func(context.Context, *Materialization) (*Materialized, error)
	// BeforeModel is called before each model call. Returning a switch ends the turn without the call.
	BeforeModel func(context.Context, *BeforeModel) (*protocol.FrameSwitch, error)
}

// Materialization describes a session that is being opened.
type Materialization struct {
	SessionID protocol.SessionID
	Root      bool                  // it has no parent session
	Options   json.RawMessage       // of the plugin, from the session's configuration
	Recorded  *protocol.TurnOptions // options recorded for the current frame; nil: none
}

// Materialized are the turn options to record for a session.
type Materialized struct {
	Options protocol.TurnOptions
	// AllFrames records the options for all frames. Otherwise they apply to the current frame and frames opened from
	// it.
	AllFrames bool
}

// BeforeModel describes a model call that is about to be made.
type BeforeModel struct {
	TurnID protocol.TurnID
	View   *View
	Host   Capabilities
}

// ErrExtension means that this protocol does not accept extensions.
var ErrExtension = errors.New("this protocol does not accept extensions")

// Protocol returns the protocol session. It is usable even if no plugin registered one.
func (s *Session) Protocol() Protocol {
	if s.protocol == nil {
		return Protocol{plugins: s.roster, plugin: s.contributions.driver.plugin}
	}
	return Protocol{s.roster, s.protocol.plugin, s.protocol.do}
}

// Protocol calls the callbacks of a protocol session, each with the time limit of a hook.
type Protocol struct {
	plugins   *roster
	plugin    string
	callbacks ProtocolSession
}

// Initialize calls ProtocolSession.Initialize.
func (p Protocol) Initialize(ctx context.Context, id protocol.SessionID) error {
	return callback(ctx, p, p.callbacks.Initialize, id)
}

// Restore calls ProtocolSession.Restore.
func (p Protocol) Restore(ctx context.Context, v *View) error {
	return callback(ctx, p, p.callbacks.Restore, v)
}

// Appends reports whether the plugin has an AppendNodes callback.
func (p Protocol) Appends() bool { return p.callbacks.AppendNodes != nil }

// AppendNodes calls ProtocolSession.AppendNodes with a copy of the nodes.
func (p Protocol) AppendNodes(ctx context.Context, nodes []protocol.NodeBody) error {
	return callback(ctx, p, p.callbacks.AppendNodes, own(nodes))
}

// ApplyExtension passes the data of a client to the plugin, or fails with ErrExtension.
func (p Protocol) ApplyExtension(ctx context.Context, x json.RawMessage) error {
	if p.callbacks.ApplyExtension == nil {
		return ErrExtension
	}
	return callback(ctx, p, p.callbacks.ApplyExtension, own(x))
}

// ValidateTurn checks turn options from a client.
func (p Protocol) ValidateTurn(ctx context.Context, o *protocol.TurnOptions) error {
	return callback(ctx, p, p.callbacks.ValidateTurn, own(o))
}

// Materialize returns the options to record; nil keeps the recorded ones.
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

// Switches reports whether the plugin has a BeforeModel callback.
func (p Protocol) Switches() bool { return p.callbacks.BeforeModel != nil }

// BeforeModel asks the plugin for a switch of frames; nil means that the model call proceeds.
func (p Protocol) BeforeModel(ctx context.Context, b *BeforeModel) (*protocol.FrameSwitch, error) {
	if p.callbacks.BeforeModel == nil {
		return nil, nil
	}
	mine := *b
	mine.Host = b.Host.limit(HookBeforeModel)
	return invoke(ctx, p.plugins, HookBeforeModel, p.plugin, func() (*protocol.FrameSwitch, error) { return p.callbacks.BeforeModel(ctx, &mine) })
}

// callback invokes f unless it is nil.
func callback[T any](ctx context.Context, p Protocol, f func(context.Context, T) error, v T) error {
	if f == nil {
		return nil
	}
	_, err := invoke(ctx, p.plugins, HookProtocol, p.plugin, func() (struct{}, error) { return struct{}{}, f(ctx, v) })
	return err
}
