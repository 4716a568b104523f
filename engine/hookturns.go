package engine

import (
	"context"
	"slices"

	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// prepared is what plugins made of a turn before it began. It is stored with the turn's beginning.
type prepared struct {
	Messages []protocol.Message   `json:"messages,omitempty"` // after the input
	Abort    *protocol.Issue      `json:"abort,omitempty"`    // the turn ends before it begins
	Outcome  protocol.OutcomeKind `json:"outcome,omitempty"`  // and how
}

// beforeTurn asks plugins before the turn begins, unless an earlier run of the daemon has stored what they said. An error
// means that the daemon stops.
func (r *run) beforeTurn(ctx context.Context) error {
	if r.machine != nil {
		return nil
	}
	p := &prepared{}
	var told []change.Event
	all, err := r.plugins.BeforeTurn(ctx, &plugin.TurnContext{
		TurnID: r.id, View: r.view(nil), Input: r.input, Inputs: r.forPlugins, Host: r.capabilities(),
	})
	if err == nil {
		told, err = r.seam(ctx, plugin.HookBeforeTurn, "", all, func(msgs []protocol.Message) { p.Messages = append(p.Messages, spoken(msgs)...) })
	}
	if cause := context.Cause(ctx); cause != nil {
		if r.left() {
			return cause
		}
		err = nil // the turn is cancelled, which its first effect sees to
	}
	if err != nil {
		r.eng.blame(err)
		p.Abort, p.Outcome = issueOfSeam(err, "plugin_prepare_turn")
	}
	r.begin.Prepared = p
	r.assemble()
	if len(all) == 0 {
		return nil
	}
	err = r.flush(r.life, nil, told...) // hooks that wanted something are not asked again
	if err != nil && !r.left() {
		r.unprepared(&hookFailure{"plugin_prepare_turn", err})
		return nil
	}
	return err
}

// abortion is the error of a seam at which a plugin stops the turn.
type abortion struct{ owned plugin.Owned }

func (a *abortion) Error() string { return a.owned.Message }

// seam applies what hooks want at a turn seam. An abort does not keep the others from being applied; the last one counts.
// What they tell is to be stored with what they said.
func (r *run) seam(ctx context.Context, seam plugin.Hook, at string, all []plugin.Owned, say func([]protocol.Message)) (told []change.Event, err error) {
	var stop error
	for i, o := range all {
		switch o.Kind {
		case plugin.AbortTurn, plugin.EnqueueMessages, plugin.EmitEvents:
			if err := plugin.CheckSeam(seam, o); err != nil {
				return told, err
			}
			switch o.Kind {
			case plugin.AbortTurn:
				stop = &abortion{o}
			case plugin.EnqueueMessages:
				say(messagesOfPlugin(o))
			default:
				told = append(told, pluginEvents(r.id, o)...)
			}
		default:
			if err := r.apply(ctx, seam, at+"#"+itoa(i), []plugin.Owned{o}); err != nil {
				return told, err
			}
		}
	}
	return told, stop
}

// issueOfSeam is an error of a turn seam as an issue, and how the turn ends with it.
func issueOfSeam(err error, code string) (*protocol.Issue, protocol.OutcomeKind) {
	if a, ok := err.(*abortion); ok {
		return &protocol.Issue{Kind: "plugin", Code: a.owned.Code, Message: a.owned.Message}, protocol.OutcomePluginAbort
	}
	return &protocol.Issue{Kind: "plugin", Code: code, Message: err.Error()}, protocol.OutcomeRuntimeError
}

// passage is what plugins want at a checkpoint.
type passage struct {
	turn.Delivery
	told  []change.Event // to be stored with it
	acted bool           // it may have had effects
}

// atCheckpoint is what plugins let in at a checkpoint: what they said at tool seams since the last one, then what they say
// now.
func (r *run) atCheckpoint(ctx context.Context, effect turn.Effect) (passage, error) {
	msgs := r.held
	r.held = nil
	p := passage{Delivery: delivery(msgs)}
	if !r.plugins.HasCheckpoint() {
		return p, nil
	}
	all, err := r.plugins.Checkpoint(ctx, &plugin.CheckpointContext{
		TurnID: r.id, Kind: effect.Checkpoint.Kind, View: r.view(r.machine.Messages()), Host: r.capabilities(),
	})
	p.acted = len(all) > 0
	if err == nil {
		at := itoa(int(effect.ID))
		p.told, err = r.seam(ctx, plugin.HookCheckpoint, at, all, func(said []protocol.Message) { msgs = append(slices.Clip(msgs), said...) })
		p.Delivery = delivery(msgs)
	}
	switch {
	case err == nil:
	case context.Cause(ctx) != nil:
		return p, context.Cause(ctx)
	default:
		r.eng.blame(err)
		issue, _ := issueOfSeam(err, "plugin_checkpoint")
		p.Delivery = turn.Delivery{Abort: issue}
	}
	return p, nil
}

// delivery is what messages of plugins are at a checkpoint.
func delivery(msgs []protocol.Message) (d turn.Delivery) {
	d.Messages, d.Transient = apart(msgs)
	return d
}

// afterTurn asks plugins when the turn is over and not committed. An error means that the daemon stops.
func (r *run) afterTurn() error {
	if r.plugins == nil || !r.plugins.HasAfterTurn() && !r.plugins.Listens() {
		return nil
	}
	if r.plugins.HasAfterTurn() {
		if err := r.concluded(r.life); err != nil { // a turn that was cancelled has an end too
			if r.left() {
				return err
			}
			r.eng.blame(err)
			issue, _ := issueOfSeam(err, "plugin_finalize_turn")
			issue.Code = "plugin_finalize_turn"
			r.given = &givenUp{*issue}
		}
	}
	r.emitLifecycle(&plugin.LifecycleEvent{Kind: plugin.TurnFinalized, Report: r.report(r.result(nil), 0)})
	return nil
}

// concluded applies what plugins want of a turn that is over. Events are told after the commit.
func (r *run) concluded(ctx context.Context) error {
	all, err := r.plugins.AfterTurn(ctx, &plugin.TurnSummary{
		TurnID: r.id, Report: r.report(r.result(nil), 0), Window: r.begin.Config.Model.ContextWindow, Context: r.used(), Host: r.capabilities(),
	})
	if err != nil {
		return err
	}
	for _, o := range all {
		r.full = r.full || o.Kind == plugin.CompactHistory
	}
	told, err := r.seam(ctx, plugin.HookAfterTurn, "", all, r.appendLasting)
	if err == nil {
		r.after = append(r.after, told...)
	}
	return err
}

// appendLasting adds messages of plugins to the history that the turn becomes. There is no model call that could be shown the others.
func (r *run) appendLasting(msgs []protocol.Message) {
	lasting, transient := apart(spoken(msgs))
	r.append(lasting)
	for _, m := range transient {
		r.issues = append(r.issues, protocol.Issue{Kind: "plugin", Code: "transient_message_dropped",
			Message: "a transient message of " + m.Origin.Plugin + " was dropped: no model is called after a turn"})
	}
}

// append adds messages to the history that the turn becomes.
func (r *run) append(msgs []protocol.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, msg := range msgs {
		r.nodes = append(r.nodes, protocol.Node{ID: r.nodeID(len(r.nodes)), TurnID: r.id, Frame: r.begin.Frame, AtMs: now(), Message: &msg})
	}
}

// emitLifecycle tells plugins of a fact. What fails there is an issue of the turn.
func (r *run) emitLifecycle(event *plugin.LifecycleEvent) {
	if r.plugins == nil || !r.plugins.Listens() {
		return
	}
	event.Host = r.capabilities()
	for _, f := range r.plugins.Emit(r.life, event) {
		r.eng.blame(f.Err)
		r.eng.Log.Error("lifecycle hook failed", "turn", r.id, "plugin", f.Plugin, "event", event.Kind, "error", f.Err)
		r.issues = append(r.issues, protocol.Issue{Kind: "plugin", Code: "lifecycle_hook_failed", Message: f.Plugin + ": " + f.Err.Error()})
	}
}

// afterCommit tells what was to be told once the turn is history.
func (r *run) afterCommit() {
	if r.plugins == nil {
		return
	}
	before := len(r.issues)
	if r.plugins.Listens() {
		r.emitLifecycle(&plugin.LifecycleEvent{Kind: plugin.TurnPersisted, Report: r.told, View: r.view(r.machine.Messages())})
	}
	for _, issue := range r.issues[before:] {
		r.after = append(r.after, issueEvent(r.id, issue))
	}
	if len(r.after) == 0 && !r.plugins.Listens() {
		return
	}
	_, err := ask(r, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commitKept(ctx, persistence.Commit{}, r.after...)
	})
	if err != nil && !r.left() {
		r.eng.Log.Error("what came after a turn is not stored", "turn", r.id, "error", err)
	}
}

// view is the session as its plugins see it, with messages of the turn.
func (r *run) view(more []protocol.Message) *plugin.View {
	v := &plugin.View{Session: r.about, Window: r.begin.Config.Model.ContextWindow, TurnOptions: r.begin.TurnOptions}
	v.Session.Config, v.Session.State = r.begin.Config, protocol.SessionRunning
	return v.Holding(r.past, more...)
}
