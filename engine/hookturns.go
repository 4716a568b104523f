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

// prepared is what the BeforeTurn hooks contributed. It is stored with the start of the turn, so
// the hooks do not run again after a restart.
type prepared struct {
	// Messages follow the input.
	Messages []protocol.Message `json:"messages,omitempty"`
	// Abort is set if a hook stopped the turn before it began.
	Abort *protocol.Issue `json:"abort,omitempty"`
	// Outcome is how the turn ends if Abort is set.
	Outcome protocol.OutcomeKind `json:"outcome,omitempty"`
}

// seams runs the hooks of a turn's plugins at its seams: before the turn, at each checkpoint, and
// after it. It carries out their directives and keeps the data that these hooks see. All methods
// run on the goroutine of the turn.
type seams struct {
	*hooks
	// store commits for the turn.
	store *turnStore
	// journal has what the turn has done so far; seams adds to it.
	journal *journal
	// result collects issues and events that hooks cause.
	result *turnResult
	// sessionAtStart is the session as it was when the turn began, or resumed after a restart.
	sessionAtStart protocol.Session
	// past is the history before the turn.
	past []*protocol.Message
	// input has the messages that the turn starts with.
	input []protocol.Message
	// queuedMessages are messages of tool call hooks, which enter the conversation at the next
	// checkpoint.
	queuedMessages []protocol.Message
}

// beforeTurn runs the BeforeTurn hooks, unless an earlier run of the daemon stored their result,
// and starts the turn's machine. A failing hook becomes the outcome of the turn. An error means
// that the turn is left for a later run.
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
		told, err = s.seam(ctx, plugin.HookBeforeTurn, "", all, func(msgs []protocol.Message) { p.Messages = append(p.Messages, plugin.KeepUserAndSystem(msgs)...) })
	}
	if cause := context.Cause(ctx); cause != nil {
		if s.store.suspended() {
			return cause
		}
		err = nil // the first effect handles the cancellation
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
	err = s.store.flush(s.store.life, nil, told...) // hooks with directives must not run again
	if err != nil && !s.store.suspended() {
		s.failUnstarted(&hookFailure{"plugin_prepare_turn", err})
		return nil
	}
	return err
}

// start creates the turn's machine from its input and the messages of hooks.
func (s *seams) start() {
	input, shown := s.input, []protocol.Message(nil)
	if p := s.journal.begin.Prepared; p != nil {
		var lasting []protocol.Message
		lasting, shown = plugin.SplitTransient(p.Messages)
		input = append(slices.Clip(input), lasting...)
	}
	s.journal.start(turn.New(s.plugins.Driver(), turn.Config{
		Input: input, Transient: shown, Budget: s.journal.begin.Config.Budget, Generation: s.journal.begin.Config.Generation, Options: s.journal.begin.TurnOptions,
		Schema: s.journal.begin.Schema,
	}))
	if p := s.journal.begin.Prepared; p != nil && p.Abort != nil {
		s.journal.fail(p.Outcome, *p.Abort)
	}
}

// failUnstarted ends a turn whose context could not be prepared, with the failed hook as the issue.
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

// turnAbort is the error of a seam at which a plugin stopped the turn.
type turnAbort struct{ owned plugin.Owned }

func (a *turnAbort) Error() string { return a.owned.Message }

// seam carries out the directives of hooks at one seam of the turn. An abort does not prevent the
// other directives; the last abort wins. say receives the messages. The caller commits the returned
// events together with the messages.
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
				say(s.session.files().Messages(ctx, plugin.MessagesOf(o)))
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

// issueOfSeam turns an error of a seam into an issue, and returns how the turn ends.
func issueOfSeam(err error, code string) (*protocol.Issue, protocol.OutcomeKind) {
	if a, ok := err.(*turnAbort); ok {
		return &protocol.Issue{Kind: "plugin", Code: a.owned.Code, Message: a.owned.Message}, protocol.OutcomePluginAbort
	}
	return &protocol.Issue{Kind: "plugin", Code: code, Message: err.Error()}, protocol.OutcomeRuntimeError
}

// checkpointResult is what hooks contribute at a checkpoint.
type checkpointResult struct {
	turn.Delivery
	// events are committed with the delivery.
	events []change.Event
	// acted is set if hooks gave directives, which may have had effects.
	acted bool
}

// atCheckpoint runs the Checkpoint hooks and returns their messages after those that tool call
// hooks queued since the last checkpoint. A failing hook aborts the turn.
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

// delivery returns the messages as the machine takes them at a checkpoint.
func delivery(msgs []protocol.Message) (d turn.Delivery) {
	d.Messages, d.Transient = plugin.SplitTransient(msgs)
	return d
}

// afterTurn runs the AfterTurn hooks when the turn has its outcome but is not committed. It runs
// them for cancelled turns too. used returns the size of the context in tokens. An error means that
// the turn is left for a later run.
func (s *seams) afterTurn(used func() int64) error {
	if !s.plugins.HasAfterTurn() && !s.plugins.Listens() {
		return nil
	}
	if s.plugins.HasAfterTurn() {
		if err := s.runAfterTurn(s.store.life, used()); err != nil { // also for a cancelled turn
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

// runAfterTurn carries out the directives of AfterTurn hooks. Their events are published after the
// commit.
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

// appendLasting adds messages of plugins to the history that the turn becomes. It drops transient
// ones, since no model call follows that could show them.
func (s *seams) appendLasting(msgs []protocol.Message) {
	lasting, transient := plugin.SplitTransient(plugin.KeepUserAndSystem(msgs))
	s.journal.append(lasting)
	for _, m := range transient {
		s.result.note(protocol.Issue{Kind: "plugin", Code: "transient_message_dropped",
			Message: "dropped a transient message of plugin " + m.Origin.Plugin + ": no model call follows the end of a turn"})
	}
}

// emitLifecycle notifies the plugins of a lifecycle event. A failure becomes an issue of the turn.
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

// afterCommit notifies plugins that the turn is stored, then commits the events and the plugin
// state that came after it.
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
		s.eng.Log.Error("could not store the events and plugin state after a turn", "turn", s.store.turn, "error", err)
	}
}

// view returns the session as its plugins see it: the history before the turn, then the given
// messages.
func (s *seams) view(more []protocol.Message) *plugin.View {
	v := &plugin.View{Session: s.sessionAtStart, Window: s.journal.begin.Config.Model.ContextWindow, TurnOptions: s.journal.begin.TurnOptions}
	v.Session.Config, v.Session.State = s.journal.begin.Config, protocol.SessionRunning
	return v.WithMessages(s.past, more...)
}

// project computes the answer that people see of the turn. It runs off the actor, before the report
// is made there, because the driver and plugins filter the text.
func (s *seams) project() {
	result := s.journal.result()
	raw := result.Answer()
	s.result.answer = projection{raw, s.visibleProse(raw)}
}

// visibleProse returns text as people should see it, without the parts that the driver or plugins
// hide. If they panic it returns the text unchanged.
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

// logProseFailure logs that text is shown unfiltered, because a plugin failed to filter it.
func (s *seams) logProseFailure(err error) {
	s.eng.group.LogPanic(err)
	s.eng.Log.Warn("a plugin failed to filter text; showing it unfiltered", "session", s.session.id, "turn", s.store.turn, "error", err)
}
