package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/queue"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// operationOutcome is what an operation came to, as its receipt keeps it.
type operationOutcome struct {
	protocol.OperationReceipt
	Abandoned string `json:"left,omitempty"` // why lashd stopped waiting for it; if set, the receipt is empty
}

// operation is a run of a command or a task.
type operation struct {
	eng     *Engine
	kind    protocol.OperationKind
	params  *protocol.OperationParams
	scope   string
	receipt receipt.Request
	info    protocol.OperationInfo
	ceiling *protocol.Ceiling // limits inputs that it queues; nil: its plugin is not sandboxed
	begun   bool              // the plugin may have been called; durable if there is a key
}

func (o *operation) run(ctx context.Context) (*protocol.OperationReceipt, error) {
	if o.params.SessionID == "" {
		return o.runWithoutSession(ctx)
	}
	return o.runInSession(ctx)
}

// begin makes durable that the operation is about to run: after a crash it is not run again.
func (o *operation) begin(ctx context.Context) error {
	if o.receipt.Key == "" {
		o.begun = true
		return nil
	}
	r, err := o.eng.store.Commit(context.WithoutCancel(ctx), &persistence.Commit{Receipt: o.receipt.Begun(), AtMs: now()})
	if err == nil && r.Replayed {
		err = receipt.ErrReplayed
	}
	o.begun = err == nil
	return err
}

// noResult is why an operation has no end: plugins say that it has failed, so that it may be run again; or it was interrupted, and
// nobody knows what it did.
func (o *operation) noResult(ctx context.Context, why error) error {
	refused := errors.As(why, new(*plugin.OperationError)) || errors.As(why, new(*RejectedError)) || errors.As(why, new(*plugin.HookError))
	switch {
	case !o.begun:
		return why
	case refused && o.receipt.Key == "":
		return why
	case !refused:
		return &InterruptedError{fmt.Sprintf("the operation %s", o.params.Name), why}
	}
	if _, err := o.eng.store.Commit(context.WithoutCancel(ctx), &persistence.Commit{Forget: o.receipt.Key, AtMs: now()}); err != nil {
		o.eng.Log.Error("failure of an operation was not stored; a repetition with the same key is refused", "operation", o.params.Name, "error", err)
	}
	return why
}

// storeAbandoned makes durable that an operation was storeAbandoned alone: nobody knows what it did, so that it is not run again. Its session may be
// gone by now; the receipt is nobody's.
func (o *operation) storeAbandoned(ctx context.Context, why *plugin.OperationError) (*operationOutcome, error) {
	o.eng.Log.Error("operation did not return in time; lashd no longer waits for it", "session", o.params.SessionID, "operation", o.params.Name, "error", why.Message)
	end := &operationOutcome{Abandoned: why.Message}
	if o.receipt.Key == "" {
		return end, nil
	}
	_, err := o.eng.store.Commit(context.WithoutCancel(ctx), &persistence.Commit{Receipt: o.receipt.With(end), AtMs: now()})
	return end, err
}

// scopeOf is unique to one run of an operation; a repetition of a request runs in the same one.
func scopeOf(name string, rc receipt.Request) string {
	if rc.Key == "" {
		return "operation:" + name + ":" + string(protocol.NewInputID())
	}
	return "operation:" + name + ":" + string(protocol.DigestOf(append([]byte(rc.Key), rc.Hash...))[:32])
}

// check refuses what need not wait for the session to be refused.
func (o *operation) check(s *plugin.Session) (err error) {
	if o.info, err = findOperation(s, o.params.Name); err != nil {
		return err
	}
	o.ceiling = authority.Sandboxed(s.Sandboxed(o.info.Plugin))
	switch {
	case o.info.Kind != o.kind:
		return &plugin.OperationError{Code: plugin.UnknownOperation, Name: o.params.Name}
	case o.info.Session == protocol.SessionForbidden && o.params.SessionID != "":
		return &plugin.OperationError{Code: plugin.UnexpectedSession, Name: o.params.Name}
	}
	return nil
}

// runInSession runs the operation while it holds its session, and tells the protocol of its events before they are stored.
func (o *operation) runInSession(ctx context.Context) (r *protocol.OperationReceipt, err error) {
	w, err := o.eng.hold(ctx, o.params.SessionID, o.check)
	if err != nil {
		return nil, err
	}
	stored := func(bool) {}
	defer func() { stored(err == nil) }()
	run := func(ctx context.Context, l *lease) (*plugin.OperationResult, error) {
		result, err := o.call(ctx, l.plugins)
		if err != nil {
			return nil, err
		}
		told, err := l.announce(ctx, o.nodes(result))
		if err == nil {
			stored = told
		}
		return result, err
	}
	return withHeld(w, run, o.apply)
}

// nodes are the events of an operation, which are its plugin's.
func (o *operation) nodes(result *plugin.OperationResult) []protocol.NodeBody {
	nodes := make([]protocol.NodeBody, len(result.Events))
	for i := range result.Events {
		result.Events[i].Plugin = o.info.Plugin
		nodes[i].Plugin = &result.Events[i]
	}
	return nodes
}

func (o *operation) call(ctx context.Context, s *plugin.Session) (*plugin.OperationResult, error) {
	if err := o.begin(ctx); err != nil {
		return nil, err
	}
	call := &plugin.OperationCall{Args: o.params.Args, Host: o.eng.hostFor(o.params.SessionID)}
	to := plugin.Target{Explicit: &o.params.SessionID}
	var result *plugin.OperationResult
	var err error
	if o.kind == protocol.OperationCommand {
		result, err = s.Command(ctx, o.params.Name, call, to)
	} else {
		call.Scope = o.scope
		result, err = s.Task(ctx, o.params.Name, call, to)
	}
	if err != nil {
		o.eng.group.LogPanic(err)
		return nil, err
	}
	for _, q := range result.Queue {
		if err := cmp.Or(param.CheckInput(q.Input), param.CheckPluginInputs(q.PluginInputs), s.CheckInputs(q.PluginInputs)); err != nil {
			return nil, o.failed(err)
		}
	}
	return result, nil
}

func (o *operation) failed(err error) error {
	return &plugin.OperationError{Code: plugin.OperationFailed, Name: o.params.Name, Message: err.Error()}
}

// runWithoutSession runs the operation with plugins that belong to no session.
func (o *operation) runWithoutSession(ctx context.Context) (*protocol.OperationReceipt, error) {
	return withPlugins(ctx, o.eng, "", func(ctx context.Context, s *plugin.Session) (*protocol.OperationReceipt, error) {
		if err := o.check(s); err != nil {
			return nil, err
		}
		result, err := o.call(ctx, s)
		if err != nil {
			return nil, cancelledOr(ctx, err)
		}
		if len(result.Events)+len(result.Queue) > 0 {
			return nil, o.failed(errNeedsSession)
		}
		r := o.answer(result)
		if o.receipt.Key != "" {
			_, err = o.eng.store.Commit(context.WithoutCancel(ctx), &persistence.Commit{Receipt: o.receipt.With(r), AtMs: now()})
		}
		return r, err
	})
}

var errNeedsSession = errors.New("the operation returned events or inputs, which need a session; call it with a sessionId")

func (o *operation) answer(result *plugin.OperationResult) *protocol.OperationReceipt {
	return &protocol.OperationReceipt{Plugin: o.info.Plugin, Output: result.Output, Events: []protocol.PluginNode{}, Inputs: []protocol.QueuedInput{}}
}

// apply makes everything that an operation came to durable in one commit.
func (o *operation) apply(ctx context.Context, st *state, done heldResult[*plugin.OperationResult]) (*protocol.OperationReceipt, error) {
	result := done.result
	c, r := st.change(persistence.Commit{}), o.answer(result)
	st.stored.keep(c, done.captured)
	for i, event := range result.Events {
		n := protocol.NodeBody{Plugin: &event}.Node(protocol.DeriveNodeID(st.id, o.scope, i), now())
		c.Nodes, r.Events = append(c.Nodes, n), append(r.Events, event)
		c.Tell(appendedEvents(n)...)
	}
	inputs, err := st.queue.In(c).QueueOnce(ctx, c, st.eng.store, o.inputs(&st.row, result))
	if errors.Is(err, queue.ErrOtherInput) {
		err = o.failed(err)
	}
	if err != nil {
		return nil, err
	}
	r.Inputs, r.Issues, r.Seq = list(inputs), done.issues, c.Seq()
	c.Receipt = o.receipt.With(r)
	if len(c.Told())+len(c.Component) == 0 && c.Receipt == nil {
		return r, nil
	}
	return r, st.commit(ctx, c)
}

func (o *operation) inputs(s *protocol.Session, result *plugin.OperationResult) []protocol.QueuedInput {
	var all []protocol.QueuedInput
	ceiling := authority.MeetAll(o.ceiling, authority.Planning(s.Config, s.Authority.Ceiling))
	for _, q := range result.Queue {
		in := protocol.QueuedInput{Input: q.Input, PluginInputs: q.PluginInputs, Ceiling: ceiling}
		if q.SourceKey != "" {
			in.Source = o.info.Plugin + ":" + q.SourceKey
		}
		all = append(all, in)
	}
	return all
}
