package engine

import (
	"cmp"
	"context"
	"errors"

	"lashd/engine/models"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/queue"
	"lashd/engine/receipt"
	"lashd/engine/trigger"
	"lashd/engine/workgroup"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// triggerHost implements trigger.Host: it gives triggers access to the engine. Its methods run on
// goroutines of the triggers.
type triggerHost struct{ eng *Engine }

// Deliver wakes or starts the session of a delivery, exactly once: the wake and the outcome
// "delivered" are one commit. The caller stores any other outcome that it returns. After an error
// the delivery can be tried again, also by the next daemon, because its source key makes a second
// wake a duplicate.
func (h triggerHost) Deliver(ctx context.Context, r persistence.Reserved) (protocol.TriggerDelivery, error) {
	d := r.Delivery
	if r.Action.Kind == protocol.TriggerStarts {
		if err := h.startSession(ctx, r); err != nil {
			return undelivered(d, err)
		}
	}
	got, err := do(ctx, h.eng, d.SessionID, func(ctx context.Context, st *state) (protocol.TriggerDelivery, error) {
		return st.takeDelivery(ctx, r)
	})
	if err != nil {
		return undelivered(d, err)
	}
	return got, nil
}

// startSession creates the session of a delivery. Its id is derived from trigger and occurrence, so
// a retry finds it.
func (h triggerHost) startSession(ctx context.Context, r persistence.Reserved) error {
	s := r.Action.Session
	_, err := h.eng.Sessions.new(ctx, &sessionDraft{stored: true}, trigger.NewSession(s, r.Delivery.SessionID, cmp.Or(s.Title, r.Delivery.Key)))
	if errors.Is(err, persistence.ErrExists) {
		return nil
	}
	return err
}

// takeDelivery queues the delivery as a wake of the session and commits it with the outcome. A
// delivery that was taken before counts as delivered.
func (st *state) takeDelivery(ctx context.Context, r persistence.Reserved) (protocol.TriggerDelivery, error) {
	d := r.Delivery
	d.AtMs = now()
	source := "trigger:" + string(d.TriggerID) + ":" + string(r.Occurrence.ID)
	c := st.change(persistence.Commit{})
	in, refused, err := st.queue.In(c).Wake(ctx, c, st.eng.store, queue.Wake{
		Source: source, Merge: cmp.Or(r.Action.Merge, "trigger:"+string(d.TriggerID)), Delivery: cmp.Or(r.Action.Delivery, protocol.DeliverAfterTurn),
		Cause: protocol.TurnCause{ID: source, Type: "trigger", Origin: d.Key, Text: trigger.DeliveryText(r)},
	})
	switch {
	case err != nil:
		return d, err
	case refused != "" && refused != protocol.WakeDuplicate:
		d.State, d.Reason = protocol.DeliveryRefused, string(refused)
		return d, nil
	}
	d.State, d.TurnID = protocol.DeliveryDelivered, in.TurnID
	c.Triggers.Settled = []persistence.Settled{{Occurrence: r.Occurrence.ID, TriggerDelivery: d}}
	return d, st.commit(ctx, c)
}

// undelivered returns the outcome of a failed delivery, or the error if it can be tried again:
// targetGone if the session was deleted, refused for settings that are invalid now, failed for
// everything else.
func undelivered(d protocol.TriggerDelivery, err error) (protocol.TriggerDelivery, error) {
	d.AtMs = now()
	switch {
	case errors.Is(err, persistence.ErrDeleted), isMissing(err):
		d.State, d.Reason = protocol.DeliveryTargetGone, "the session is deleted"
	case invalidSettings(err):
		d.State, d.Reason = protocol.DeliveryRefused, err.Error()
	case isRetryable(err):
		return d, err
	default:
		d.State, d.Reason = protocol.DeliveryFailed, err.Error()
	}
	return d, nil
}

// invalidSettings reports whether a session cannot be created because of its settings, such as an
// unknown model, or a directory whose path leads elsewhere now.
func invalidSettings(err error) bool {
	return errors.Is(err, models.ErrNotFound) || errors.Is(err, plugin.ErrNoDriver) || errors.Is(err, pathresolve.ErrElsewhere) || errors.As(err, new(*param.Error)) ||
		errors.As(err, new(*plugin.BuildError)) || errors.As(err, new(*plugin.HookError))
}

// isRetryable reports whether an error has nothing to do with the delivery itself, so that the same
// delivery can succeed later.
func isRetryable(err error) bool {
	for _, other := range []error{
		ErrShuttingDown, ErrReloaded, workgroup.ErrSlowPlugin, persistence.ErrFull, persistence.ErrBusy, persistence.ErrExists, persistence.ErrPoisoned,
		persistence.ErrClosed, context.Canceled, receipt.ErrReplayed, errStopped,
	} {
		if errors.Is(err, other) {
			return true
		}
	}
	return false
}

// CheckSession checks the settings of a trigger's session by preparing one without creating it. It
// builds plugins, so it may be slow.
func (h triggerHost) CheckSession(ctx context.Context, s *protocol.TriggerSession) error {
	id := protocol.NewSessionID()
	p, err := param.ResolveNewSession("", trigger.NewSession(s, id, s.Title))
	if err == nil {
		err = param.CheckNewSession(p)
	}
	if err == nil {
		err = (&sessionDraft{eng: h.eng, params: p, id: id, stored: true}).prepare(ctx)
	}
	return err
}

// Plugins returns the host of the plugins of a directory as it is now.
func (h triggerHost) Plugins(ctx context.Context, cwd string) (*plugin.Host, error) {
	return h.eng.Plugins.Host(ctx, cwd)
}

// Events builds the plugins of a directory to learn which events they declare. The plugins are
// isolated and closed again.
func (h triggerHost) Events(ctx context.Context, cwd string) ([]plugin.TriggerEvent, error) {
	cfg, err := h.eng.Sessions.defaults(cwd)
	if err != nil {
		return nil, err
	}
	return workgroup.CallPlugin(ctx, h.eng.group, func(ctx context.Context) ([]plugin.TriggerEvent, error) {
		bc := plugin.BuildContext{SessionID: protocol.NewSessionID(), Cwd: cwd, StateDir: h.eng.StateDir}
		plugins, err := h.eng.build(ctx, cfg, bc, (*plugin.Host).Isolated)
		if err != nil {
			return nil, err
		}
		return plugins.Triggers(), plugins.Close()
	})
}

// Post sends a change of a trigger to the clients that watch the daemon. A slow client gets only
// the newest change of each trigger.
func (h triggerHost) Post(e protocol.ServerEvent) { h.eng.Events.Publish(string(e.Trigger.ID), e) }

// Panicked logs a panic of the trigger goroutines and returns it as an error.
func (h triggerHost) Panicked(p any) error { return h.eng.group.Recovered("triggers", "", p) }
