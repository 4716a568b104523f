package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"lashd/engine/graph"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// run is a running turn: a goroutine that performs the effects of its machine. What it pinned at its start does not
// change: configuration, plugins, and the history before it.
type run struct {
	*session
	id         protocol.TurnID
	cfg        protocol.Config
	key        int64
	frame      protocol.FrameID
	started    time.Time
	startedMs  int64
	acceptedMs int64
	cancel     context.CancelCauseFunc

	past     []*protocol.Message
	plugins  *plugin.Session
	model    provider.Provider
	machine  *turn.Machine
	input    []protocol.InputID
	catalog  *tool.Catalog
	journal  journal
	emitted  int         // messages whose items are in the log
	recorded int         // model calls that are in the log
	streamed []*openItem // items of model output that are not in the log yet

	mu    sync.Mutex
	nodes []protocol.Node // of the machine's messages, for observers of a turn in progress
}

// cancelled is the cause of a turn's context when somebody wants it to stop.
type cancelled struct{ evidence protocol.CancelEvidence }

func (c *cancelled) Error() string { return "turn cancelled: " + c.evidence.Reason }

// prepare pins what a turn works with and makes its machine; a resumed one gets the answers of its journal.
func (st *state) prepare(r *run, resumed bool) error {
	tools, err := st.openTools()
	if err != nil {
		return err
	}
	if r.past, err = st.past(); err != nil {
		return err
	}
	r.plugins, r.catalog = tools.plugins, tools.catalog
	var input []protocol.Message
	for _, in := range st.inputs {
		if in.TurnID == r.id && in.State == protocol.InputQueued {
			input = append(input, protocol.UserMessage(in.Input, &protocol.Origin{Kind: protocol.OriginTurnInput, TurnID: r.id, InputID: in.ID}))
			r.input = append(r.input, in.ID)
		}
	}
	if resumed {
		if err := r.loadJournal(st.ctx); err != nil {
			return err
		}
	}
	if r.model, err = st.eng.provider(r.cfg.Model); err != nil {
		return fmt.Errorf("model %s of %s: %w", r.cfg.Model.ID, r.cfg.Model.Provider, err)
	}
	r.machine = turn.New(tools.plugins.Driver(), turn.Config{Input: input, Budget: r.cfg.Budget, Generation: r.cfg.Generation})
	r.noteNodes()
	return nil
}

// do performs effects until the turn is done, then commits it. A panic of ours fails the turn, not the daemon.
func (r *run) do(ctx context.Context) {
	r.feed.show(protocol.Event{Type: protocol.EventTurnStarted, TurnID: r.id})
	r.trace("turn_started", nil)
	for {
		effect, ok := r.machine.Next()
		if !ok {
			break
		}
		err := r.step(ctx, effect)
		if errors.Is(err, errStopped) {
			return // a later run of the daemon goes on from the journal
		}
		if err != nil {
			r.fail(err)
		}
	}
	r.finish(ctx)
}

func (r *run) fail(err error) {
	r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", err)
	r.machine.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Kind: "runtime", Code: "runtime_error", Message: err.Error()})
}

func (r *run) step(ctx context.Context, effect turn.Effect) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.eng.Log.Error("panic in a turn", "turn", r.id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if !effect.Waits() {
		r.note(effect)
		return nil
	}
	if stop := context.Cause(ctx); stop != nil {
		return r.stop(stop, nil)
	}
	return r.perform(ctx, effect)
}

// perform answers a waiting effect: from the journal if an earlier run of the daemon had the answer, else by doing it.
func (r *run) perform(ctx context.Context, effect turn.Effect) error {
	answer, known, err := r.journal.answer(effect)
	if err != nil {
		return err
	}
	if known {
		r.machine.Deliver(effect.ID, answer)
		r.noteNodes()
		return nil
	}
	switch effect.Kind {
	case turn.EffectSync:
		return r.sync(ctx, effect)
	case turn.EffectModel:
		return r.callModel(ctx, effect)
	case turn.EffectTools:
		return r.runTools(ctx, effect)
	case turn.EffectCheckpoint:
		return r.checkpoint(ctx, effect)
	}
	return fmt.Errorf("no executor for %s effects", effect.Kind)
}

// deliver gives an answer to the machine and notes it for the journal, which the next commit of the turn writes.
func (r *run) deliver(effect turn.Effect, answer turn.Response) {
	r.journal.note(effect, answer)
	r.machine.Deliver(effect.ID, answer)
	r.noteNodes()
}

// stop ends the turn because its context did: for good if it was cancelled, to be resumed if the daemon stops.
func (r *run) stop(cause error, partial *provider.Reply) error {
	if c, ok := errors.AsType[*cancelled](cause); ok {
		r.machine.Cancel(c.evidence, partial)
		r.noteNodes()
		return nil
	}
	return errStopped
}

func (r *run) note(effect turn.Effect) {
	switch effect.Kind {
	case turn.EffectEmit:
		r.feed.show(protocol.Event{Type: protocol.EventPluginCustom, TurnID: r.id, Name: effect.Emit.Type, Body: effect.Emit.Body})
	case turn.EffectLog:
		r.trace("issue", effect.Log)
	}
}

// sync gives the iteration its prompt and tools. They are fixed for the iteration; between iterations they may change.
func (r *run) sync(ctx context.Context, effect turn.Effect) error {
	env, err := do(ctx, r.eng, r.session.id, func(_ context.Context, st *state) (turn.Environment, error) {
		r.catalog = st.tools.catalog
		return turn.Environment{System: st.tools.system, Tools: st.tools.catalog.Manifests()}, nil
	})
	if err != nil {
		return r.interrupted(ctx, err)
	}
	r.deliver(effect, turn.Response{Sync: &env})
	return nil
}

// interrupted turns an error that the end of ctx caused into the end of the turn.
func (r *run) interrupted(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause, nil)
	}
	return err
}

// noteNodes keeps the nodes of the turn so far for observers.
func (r *run) noteNodes() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.nodes); i < len(r.machine.Messages()); i++ {
		msg := r.machine.Messages()[i]
		r.nodes = append(r.nodes, protocol.Node{ID: r.nodeID(i), TurnID: r.id, Frame: r.frame, AtMs: now(), Message: &msg})
	}
}

func (r *run) nodeID(ordinal int) protocol.NodeID {
	return protocol.DeriveNodeID(r.session.id, string(r.id), ordinal)
}

func (r *run) draft(id protocol.NodeID) *protocol.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.nodes {
		if r.nodes[i].ID == id {
			n := r.nodes[i]
			return &n
		}
	}
	return nil
}

// news are the events of messages and model calls that are not in the log yet. Calls that have no result yet are
// started, all other items completed.
func (r *run) news() []logEvent {
	var events []logEvent
	result := r.machine.Result()
	for ; r.recorded < len(result.Calls); r.recorded++ {
		call := result.Calls[r.recorded]
		events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventModelRecorded, TurnID: r.id, Call: &call}})
	}
	for ; r.emitted < len(r.nodes); r.emitted++ {
		events = append(events, r.itemEvents(&r.nodes[r.emitted])...)
	}
	return events
}

func (r *run) itemEvents(n *protocol.Node) []logEvent {
	var events []logEvent
	for p := range n.Message.Parts {
		part := &n.Message.Parts[p]
		if part.Kind == protocol.PartToolResult {
			if e, ok := r.resultEvent(n, p); ok {
				events = append(events, e)
			}
			continue
		}
		item := graph.PartItem(n, p)
		kind := protocol.EventItemCompleted
		if item.Status == protocol.ItemInProgress {
			kind = protocol.EventItemStarted
		}
		events = append(events, r.itemEvent(kind, item, ref{Node: n.ID, Part: p}))
	}
	return events
}

func (r *run) itemEvent(kind protocol.EventType, item protocol.Item, of ref) logEvent {
	return logEvent{Ref: &of, Event: protocol.Event{Type: kind, TurnID: r.id, ItemID: item.ID, Item: &item}}
}

// resultEvent completes the item of the call that a result belongs to.
func (r *run) resultEvent(n *protocol.Node, part int) (logEvent, bool) {
	result := n.Message.Parts[part].Result
	for i := len(r.nodes) - 1; i >= 0; i-- {
		for p := range r.nodes[i].Message.Parts {
			call := r.nodes[i].Message.Parts[p].Call
			if call == nil || call.CallID != result.CallID {
				continue
			}
			item := graph.PartItem(&r.nodes[i], p)
			graph.Complete(&item, result)
			return r.itemEvent(protocol.EventItemCompleted, item, ref{Node: r.nodes[i].ID, Part: p, Result: n.ID, ResultPart: part}), true
		}
	}
	return logEvent{}, false
}

// flush commits what the journal gathered, with whatever else belongs to it, and lets observers see it.
func (r *run) flush(ctx context.Context, add persistence.Commit, also ...logEvent) error {
	events := append(r.news(), also...)
	add.Effects = append(r.journal.take(), add.Effects...)
	add.Fence.Turn, add.Fence.Incarnation = r.id, r.eng.incarnation
	streamed := r.streamed
	r.streamed = nil
	_, err := do(context.WithoutCancel(ctx), r.eng, r.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		_, err := st.commit(ctx, &add, events...)
		return struct{}{}, err
	})
	r.feed.end(streamed, false)
	return err
}
