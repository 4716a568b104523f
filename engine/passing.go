package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// watchOverlay sees to it that an overlay goes with its client, if it is to. The one before is not watched any more.
func (st *state) watchOverlay() {
	if st.overlaid != nil {
		close(st.overlaid)
		st.overlaid = nil
	}
	if !st.overlay.Passing {
		return
	}
	over, ctx := make(chan struct{}), context.WithoutCancel(st.ctx)
	st.overlaid = over
	away := st.eng.presence.watch(st.overlay.ClientID)
	st.eng.actors.Go(func() {
		defer away.stop()
		select {
		case <-away.gone:
			st.eng.pass(ctx, st.id, over)
		case <-over:
		case <-st.closed: // it is watched again once the session is loaded again
		case <-st.eng.done():
		}
	})
}

// pass takes an overlay out of a session, because its client is gone; over is closed once another one is there. If that cannot be
// stored it is tried again: until then, calls of its tools fail.
func (e *Engine) pass(ctx context.Context, id protocol.SessionID, over <-chan struct{}) {
	e.rid(ctx, id, "an overlay", func(ctx context.Context, st *state) error { return st.pass(ctx, over) })
}

func (st *state) pass(ctx context.Context, over <-chan struct{}) error {
	select {
	case <-over:
		return nil
	default:
	}
	t, err := st.openTools(st.row.Config)
	if err != nil {
		return err
	}
	_, err = st.setOverlay(ctx, t, overlay{}, nil, receipt{}) // the servers that it came with go, too
	return err
}
