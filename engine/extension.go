package engine

import (
	"context"
	"errors"

	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// RejectedError means that the session's protocol plugin rejected what a client sent for it.
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string {
	return "rejected by the session's protocol plugin: " + e.Err.Error()
}

func (e *RejectedError) Unwrap() error { return e.Err }

// protocolRejection turns an error of the protocol plugin into a RejectedError. Panics and timeouts
// are not rejections and pass unchanged. If ctx is done, its cause is returned instead.
func protocolRejection(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.As(err, new(*plugin.PanicError)) || errors.As(err, new(*plugin.AbandonedError)):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &RejectedError{err}
}

// validate checks the turn options of a new turn, whose form is right: with the protocol plugin, and
// then whether they can be merged with the options that the session keeps. It runs off the
// actor.
func (ts *Turns) validate(ctx context.Context, p *protocol.TurnStartParams) error {
	o := p.TurnOptions
	if o == nil {
		return nil
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

// ApplyExtension passes data to the session's protocol plugin, which alone can interpret it. It
// waits for the running turn to end, and no turn starts until it is done. The plugins' state is
// then stored together with the receipt.
func (ss *Sessions) ApplyExtension(ctx context.Context, p *protocol.SessionExtensionParams) (*protocol.SeqResult, error) {
	return receipt.Once(ctx, ss.eng.receipts, "session/applyExtension", p.Key(), p, func(rc receipt.Request) (*protocol.SeqResult, error) {
		w, err := ss.eng.hold(ctx, p.SessionID, noCheck, nil)
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
