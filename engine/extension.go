package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// RejectedError means that the session's protocol does not take what a client sends to it.
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string { return "the session's protocol rejects it: " + e.Err.Error() }

func (e *RejectedError) Unwrap() error { return e.Err }

// protocolRejection is an answer of the protocol's as clients get it. A panic is none, nor is it one that nothing comes back.
func protocolRejection(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.As(err, new(*plugin.PanicError)) || errors.As(err, new(*plugin.AbandonedError)):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &RejectedError{err}
}

// validate lets the protocol plugin check the options of a new turn.
func (ts *Turns) validate(ctx context.Context, p *protocol.TurnStartParams) error {
	o := p.TurnOptions
	switch {
	case o == nil:
		return nil
	case o.SchemaVersion < 1:
		return param.Bad("/turnOptions/schemaVersion", "must be at least 1")
	case !json.Valid(o.Payload):
		return param.Bad("/turnOptions/payload", "must be JSON")
	case len(o.Payload) > protocol.MaxTurnOptions:
		return param.Bad("/turnOptions/payload", "has %d bytes, at most %d", len(o.Payload), protocol.MaxTurnOptions)
	}
	_, err := withPlugins(ctx, ts.eng, p.SessionID, func(ctx context.Context, s *plugin.Session) (struct{}, error) {
		return workgroup.CallPlugin(ctx, ts.eng.group, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, protocolRejection(ctx, s.Protocol().ValidateTurn(ctx, o))
		})
	})
	if err != nil {
		return err
	}
	_, err = do(ctx, ts.eng, p.SessionID, func(_ context.Context, st *state) (*protocol.TurnOptions, error) {
		return plugin.MergeTurnOptions(st.stored.optionsOf(st.row.Head.Frame), o)
	})
	return protocolRejection(ctx, err)
}

// optionsOf are the turn options that came with inputs; nil: none.
func optionsOf(inputs []protocol.QueuedInput, ids []protocol.InputID) (o *protocol.TurnOptions) {
	for _, in := range inputs {
		if in.TurnOptions != nil && slices.Contains(ids, in.ID) {
			o = in.TurnOptions
		}
	}
	return o
}

// ApplyExtension gives the session's protocol something that only it understands. It waits for the running turn to end, and
// no turn starts meanwhile. What plugins keep then is stored with the receipt.
func (ss *Sessions) ApplyExtension(ctx context.Context, p *protocol.SessionExtensionParams) (*protocol.SeqResult, error) {
	return receipt.Once(ctx, ss.eng.receipts, "session/applyExtension", p.Key(), p, func(rc receipt.Request) (*protocol.SeqResult, error) {
		w, err := ss.eng.hold(ctx, p.SessionID, noCheck)
		if err != nil {
			return nil, err
		}
		extend := func(ctx context.Context, l *lease) (struct{}, error) {
			return workgroup.CallPlugin(ctx, ss.eng.group, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, protocolRejection(ctx, l.plugins.Protocol().ApplyExtension(ctx, p.Extension))
			})
		}
		return withHeld(w, extend, func(ctx context.Context, st *state, done heldResult[struct{}]) (*protocol.SeqResult, error) {
			result := &protocol.SeqResult{Seq: st.row.Seq}
			c := st.change(persistence.Commit{Receipt: rc.With(result)})
			st.stored.keep(c, done.captured)
			return result, st.commitUnlessEmpty(ctx, c)
		})
	})
}
