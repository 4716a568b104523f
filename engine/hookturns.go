package engine

import (
	"context"
	"slices"
	"strconv"

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

// seams asks the plugins of a turn at its beginning, at its checkpoints and at its end, and does what they want.
type seams struct {
	*hooks
	store          *turnStore
	journal        *journal
	result         *turnResult
	sessionAtStart protocol.Session      // as it was when the turn began, or went on after a restart
	past           []*protocol.Message   // the history before the turn
	input          []protocol.Message    // what the turn begins with
	inputs         protocol.PluginInputs // what the turn brings the plugins
	queuedMessages []protocol.Message    // of plugins, from tool seams, for the next checkpoint
}

// beforeTurn asks plugins before the turn begins, unless an earlier run of the daemon has stored what they said. An error
// means that the daemon stops.
func (s *seams) beforeTurn(ctx context.Context) error {
	if s.journal.machine != nil {
		return nil
	}
	p := &prepared{}
	var told []change.Event
	all, err := s.plugins.BeforeTurn(ctx, &plugin.TurnContext{
		TurnID: s.store.turn, View: s.view(nil), Input: s.input, Inputs: s.inputs, Host: s.capabilities(),
	})
	if err == nil {
		told, err = s.seam(ctx, plugin.HookBeforeTurn, "", all, func(msgs []protocol.Message) { p.Messages = append(p.Messages, keepUserAndSystem(msgs)...) })
	}
	if cause := context.Cause(ctx); cause != nil {
		if s.store.suspended() {
			return cause
		}
		err = nil // the turn is cancelled, which its first effect sees to
	}
	if err != nil {
		s.eng.group.LogPanic(err)
		p.Abort, p.Outcome = issueOfSeam(err, "plugin_prepare_turn")
	}
	s.journal.begin.Prepared = p
	s.start()
	if len(all) == 0 {
		return nil
	}
	err = s.store.flush(s.store.life, nil, told...) // hooks that wanted something are not asked again
	if err != nil && !s.store.suspended() {
		s.failUnstarted(&hookFailure{"plugin_prepare_turn", err})
		return nil
	}
	return err
}

// start makes the machine of what the turn begins with.
func (s *seams) start() {
	input, shown := s.input, []protocol.Message(nil)
	if p := s.journal.begin.Prepared; p != nil {
		var lasting []protocol.Message
		lasting, shown = splitTransient(p.Messages)
		input = append(slices.Clip(input), lasting...)
	}
	s.journal.start(turn.New(s.plugins.Driver(), turn.Config{
		Input: input, Transient: shown, Budget: s.journal.begin.Config.Budget, Generation: s.journal.begin.Config.Generation, Options: s.journal.begin.TurnOptions,
	}))
	if p := s.journal.begin.Prepared; p != nil && p.Abort != nil {
		s.journal.fail(p.Outcome, *p.Abort)
	}
}

// failUnstarted ends a turn whose context could not be made, before it begins.
func (s *seams) failUnstarted(failed *hookFailure) {
	s.eng.group.LogPanic(failed)
	s.eng.Log.Error("turn failed", "session", s.session.id, "turn", s.store.turn, "error", failed)
	if s.journal.machine == nil {
		s.journal.begin.Prepared = &prepared{Abort: new(failed.issue()), Outcome: protocol.OutcomeRuntimeError}
		s.start()
		return
	}
	s.journal.fail(protocol.OutcomeRuntimeError, failed.issue())
}

// turnAbort is the error of a seam at which a plugin stops the turn.
type turnAbort struct{ owned plugin.Owned }

func (a *turnAbort) Error() string { return a.owned.Message }

// seam applies what hooks want at a turn seam. An abort does not keep the others from being applied; the last one counts.
// What they tell is to be stored with what they said.
func (s *seams) seam(ctx context.Context, seam plugin.Hook, at string, all []plugin.Owned, say func([]protocol.Message)) (told []change.Event, err error) {
	var stop error
	for i, o := range all {
		switch o.Kind {
		case plugin.AbortTurn, plugin.EnqueueMessages, plugin.EmitEvents:
			if err := plugin.CheckSeam(seam, o); err != nil {
				return told, err
			}
			switch o.Kind {
			case plugin.AbortTurn:
				stop = &turnAbort{o}
			case plugin.EnqueueMessages:
				say(messagesOfPlugin(o))
			default:
				told = append(told, pluginEvents(s.store.turn, o)...)
			}
		default:
			if err := s.apply(ctx, seam, at+"#"+strconv.Itoa(i), []plugin.Owned{o}); err != nil {
				return told, err
			}
		}
	}
	return told, stop
}

// issueOfSeam is an error of a turn seam as an issue, and how the turn ends with it.
func issueOfSeam(err error, code string) (*protocol.Issue, protocol.OutcomeKind) {
	if a, ok := err.(*turnAbort); ok {
		return &protocol.Issue{Kind: "plugin", Code: a.owned.Code, Message: a.owned.Message}, protocol.OutcomePluginAbort
	}
	return &protocol.Issue{Kind: "plugin", Code: code, Message: err.Error()}, protocol.OutcomeRuntimeError
}

// checkpointResult is what plugins want at a checkpoint.
type checkpointResult struct {
	turn.Delivery
	events []change.Event // to be stored with it
	acted  bool           // it may have had effects
}

// atCheckpoint is what plugins let in at a checkpoint: what they said at tool seams since the last one, then what they say
// now.
func (s *seams) atCheckpoint(ctx context.Context, effect turn.Effect) (checkpointResult, error) {
	msgs := s.queuedMessages
	s.queuedMessages = nil
	p := checkpointResult{Delivery: delivery(msgs)}
	if !s.plugins.HasCheckpoint() {
		return p, nil
	}
	all, err := s.plugins.Checkpoint(ctx, &plugin.CheckpointContext{
		TurnID: s.store.turn, Kind: effect.Checkpoint.Kind, View: s.view(s.journal.messages()), Host: s.capabilities(),
	})
	p.acted = len(all) > 0
	if err == nil {
		at := strconv.Itoa(int(effect.ID))
		p.events, err = s.seam(ctx, plugin.HookCheckpoint, at, all, func(said []protocol.Message) { msgs = append(slices.Clip(msgs), said...) })
		p.Delivery = delivery(msgs)
	}
	switch {
	case err == nil:
	case context.Cause(ctx) != nil:
		return p, context.Cause(ctx)
	default:
		s.eng.group.LogPanic(err)
		issue, _ := issueOfSeam(err, "plugin_checkpoint")
		p.Delivery = turn.Delivery{Abort: issue}
	}
	return p, nil
}

// delivery is what messages of plugins are at a checkpoint.
func delivery(msgs []protocol.Message) (d turn.Delivery) {
	d.Messages, d.Transient = splitTransient(msgs)
	return d
}

// afterTurn asks plugins when the turn is over and not committed. An error means that the daemon stops.
func (s *seams) afterTurn(used func() int64) error {
	if !s.plugins.HasAfterTurn() && !s.plugins.Listens() {
		return nil
	}
	if s.plugins.HasAfterTurn() {
		if err := s.runAfterTurn(s.store.life, used()); err != nil { // a turn that was cancelled has an end too
			if s.store.suspended() {
				return err
			}
			s.eng.group.LogPanic(err)
			issue, _ := issueOfSeam(err, "plugin_finalize_turn")
			issue.Code = "plugin_finalize_turn"
			s.result.discarded = issue
		}
	}
	s.emitLifecycle(&plugin.LifecycleEvent{Kind: plugin.TurnFinalized, Report: s.result.reportOf(s.result.result(nil), 0)})
	return nil
}

// runAfterTurn applies what plugins want of a turn that is over. Events are told after the commit.
func (s *seams) runAfterTurn(ctx context.Context, used int64) error {
	all, err := s.plugins.AfterTurn(ctx, &plugin.TurnSummary{
		TurnID: s.store.turn, Report: s.result.reportOf(s.result.result(nil), 0), Window: s.journal.begin.Config.Model.ContextWindow, Context: used, Host: s.capabilities(),
	})
	if err != nil {
		return err
	}
	for _, o := range all {
		s.result.compacts = s.result.compacts || o.Kind == plugin.CompactHistory
	}
	told, err := s.seam(ctx, plugin.HookAfterTurn, "", all, s.appendLasting)
	if err == nil {
		s.result.eventsAfterCommit = append(s.result.eventsAfterCommit, told...)
	}
	return err
}

// appendLasting adds messages of plugins to the history that the turn becomes. There is no model call that could be shown the others.
func (s *seams) appendLasting(msgs []protocol.Message) {
	lasting, transient := splitTransient(keepUserAndSystem(msgs))
	s.journal.append(lasting)
	for _, m := range transient {
		s.result.note(protocol.Issue{Kind: "plugin", Code: "transient_message_dropped",
			Message: "a transient message of " + m.Origin.Plugin + " was dropped: no model is called after a turn"})
	}
}

// emitLifecycle tells plugins of a fact. What fails there is an issue of the turn.
func (s *seams) emitLifecycle(event *plugin.LifecycleEvent) {
	if !s.plugins.Listens() {
		return
	}
	event.Host = s.capabilities()
	for _, f := range s.plugins.Emit(s.store.life, event) {
		s.eng.group.LogPanic(f.Err)
		s.eng.Log.Error("lifecycle hook failed", "turn", s.store.turn, "plugin", f.Plugin, "event", event.Kind, "error", f.Err)
		s.result.note(protocol.Issue{Kind: "plugin", Code: "lifecycle_hook_failed", Message: f.Plugin + ": " + f.Err.Error()})
	}
}

// afterCommit tells what was to be told once the turn is history.
func (s *seams) afterCommit() {
	before := len(s.result.issues)
	if s.plugins.Listens() {
		s.emitLifecycle(&plugin.LifecycleEvent{Kind: plugin.TurnPersisted, Report: s.result.report, View: s.view(s.journal.messages())})
	}
	for _, issue := range s.result.issues[before:] {
		s.result.eventsAfterCommit = append(s.result.eventsAfterCommit, issueEvent(s.store.turn, issue))
	}
	if len(s.result.eventsAfterCommit) == 0 && !s.plugins.Listens() {
		return
	}
	kept := s.store.owner.plugins.captureIdle(s.store.life)
	_, err := onTurnState(s.store, func(ctx context.Context, st *state) (struct{}, error) {
		c := st.change(persistence.Commit{})
		c.Tell(s.result.eventsAfterCommit...)
		kept.addTo(c, st)
		return struct{}{}, st.commitUnlessEmpty(ctx, c)
	})
	if err != nil && !s.store.suspended() {
		s.eng.Log.Error("what came after a turn is not stored", "turn", s.store.turn, "error", err)
	}
}

// view is the session as its plugins see it, with messages of the turn.
func (s *seams) view(more []protocol.Message) *plugin.View {
	v := &plugin.View{Session: s.sessionAtStart, Window: s.journal.begin.Config.Model.ContextWindow, TurnOptions: s.journal.begin.TurnOptions}
	v.Session.Config, v.Session.State = s.journal.begin.Config, protocol.SessionRunning
	return v.WithMessages(s.past, more...)
}

// project makes the turn's answer what a person should see. Reports take it from here: who makes the last one is the actor, which
// asks no plugins.
func (s *seams) project() {
	raw := answerOf(s.journal.result())
	s.result.answer = projection{raw, s.visibleProse(raw)}
}

// visibleProse is prose as a person should see it; as it is, if the driver panics over it.
func (s *seams) visibleProse(raw string) (safe string) {
	if raw == "" {
		return raw
	}
	defer func() {
		if p := recover(); p != nil {
			s.eng.group.Recovered("turn", s.store.turn, p)
			safe = raw
		}
	}()
	safe, err := s.plugins.Prose(s.store.life, s.plugins.Driver().Visible(raw))
	if err != nil && !s.store.suspended() {
		s.logProseFailure(err)
		s.result.note((&hookFailure{"plugin_prose", err}).issue())
	}
	return safe
}

// logProseFailure tells that text is shown with what a plugin would have hidden.
func (s *seams) logProseFailure(err error) {
	s.eng.group.LogPanic(err)
	s.eng.Log.Warn("a plugin failed to make text readable", "session", s.session.id, "turn", s.store.turn, "error", err)
}
