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

// operationOutcome is the stored result of an operation: the answer to a repetition of its request.
type operationOutcome struct {
	protocol.OperationReceipt
	Abandoned string `json:"left,omitempty"` // why lashd stopped waiting for it; if set, the receipt is empty
}

// operation is one run of a command or task that a client requested. It lives as long as the request, on the
// goroutine of the request. With an idempotency key it runs at most once, even across a crash, unless the plugin
// reports a failure: then a repetition runs it again.
type operation struct {
	eng     *Engine
	kind    protocol.OperationKind
	params  *protocol.OperationParams
	scope   string
	receipt receipt.Request
	info    protocol.OperationInfo
	ceiling *protocol.Ceiling  // limits inputs that it queues; nil: its plugin is not sandboxed
	blobs   []persistence.Blob // attachments of inputs that it queues
	begun   bool               // the plugin may have been called; durable if there is a key
}

// run runs the operation in its session, or without one. It returns after the receipt is stored. Its errors are
// those of the plugin or of the store; operate turns them into the answer of the request.
func (o *operation) run(ctx context.Context) (*protocol.OperationReceipt, error) {
	if o.params.SessionID == "" {
		return o.runWithoutSession(ctx)
	}
	return o.runInSession(ctx)
}

// begin stores that the operation is about to run, so that it does not run again after a crash. Without a key
// there is nothing to store. A repetition that another caller began in the meantime fails with
// receipt.ErrReplayed.
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

// noResult returns the error for an operation that failed with why. If the plugin reported the failure, it deletes
// the mark of begin, so that a repetition may run again. Any other error after begin becomes an *InterruptedError:
// the effects are unknown, and the operation must not run again.
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

// storeAbandoned stores that the plugin did not return in time. Its effects are unknown, so a repetition gets this
// error instead of another run. The receipt belongs to no session, because the session may be deleted by now.
func (o *operation) storeAbandoned(ctx context.Context, why *plugin.OperationError) (*operationOutcome, error) {
	o.eng.Log.Error("operation did not return in time; lashd no longer waits for it", "session", o.params.SessionID, "operation", o.params.Name, "error", why.Message)
	end := &operationOutcome{Abandoned: why.Message}
	if o.receipt.Key == "" {
		return end, nil
	}
	_, err := o.eng.store.Commit(context.WithoutCancel(ctx), &persistence.Commit{Receipt: o.receipt.With(end), AtMs: now()})
	return end, err
}

// scopeOf returns the namespace for the ids of nodes and inputs that an operation creates. With a key it depends
// on the request alone, so a repetition creates the same ids; without one it is unique.
func scopeOf(name string, rc receipt.Request) string {
	if rc.Key == "" {
		return "operation:" + name + ":" + string(protocol.NewInputID())
	}
	return "operation:" + name + ":" + string(protocol.DigestOf(append([]byte(rc.Key), rc.Hash...))[:32])
}

// check looks up the operation and refuses one that is unknown, of another kind, or not allowed in a session. It
// runs before the wait for the session, so that such errors are immediate.
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

// runInSession runs the operation while it holds its session, so no turn runs at the same time. The protocol
// approves the events before they are stored, and learns afterwards whether the commit succeeded.
func (o *operation) runInSession(ctx context.Context) (r *protocol.OperationReceipt, err error) {
	w, err := o.eng.hold(ctx, o.params.SessionID, func(l *lease) error { return o.check(l.plugins) }, nil)
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

// nodes returns the events of a result as history nodes, with the plugin that owns the operation as their author.
func (o *operation) nodes(result *plugin.OperationResult) []protocol.NodeBody {
	nodes := make([]protocol.NodeBody, len(result.Events))
	for i := range result.Events {
		result.Events[i].Plugin = o.info.Plugin
		nodes[i].Plugin = &result.Events[i]
	}
	return nodes
}

// call marks the operation as begun and calls the plugin. The checks after the call reject a result that the
// session cannot store, before anything of it is visible.
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
	for i, q := range result.Queue {
		in, err := o.eng.attachments().Prepare(ctx, o.params.SessionID, q.Input)
		if err = cmp.Or(err, param.CheckInputsOfPlugin(q.PluginInputs), s.CheckInputs(q.PluginInputs)); err != nil {
			return nil, o.failed(err)
		}
		result.Queue[i].Input, o.blobs = in.Parts, append(o.blobs, in.Blobs...)
	}
	return result, nil
}

// failed returns err as a failure that the plugin reported, after which the operation may run again.
func (o *operation) failed(err error) error {
	return &plugin.OperationError{Code: plugin.OperationFailed, Name: o.params.Name, Message: err.Error()}
}

// runWithoutSession runs the operation with temporary plugins that belong to no session. Events and inputs have no
// place to go and fail the operation.
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

// answer returns the receipt without events and inputs, whose lists are empty instead of null in JSON.
func (o *operation) answer(result *plugin.OperationResult) *protocol.OperationReceipt {
	return &protocol.OperationReceipt{Plugin: o.info.Plugin, Output: result.Output, Events: []protocol.PluginNode{}, Inputs: []protocol.QueuedInput{}}
}

// apply commits the events, queued inputs, plugin state and receipt of an operation together. It runs on the actor
// while the operation still holds the session.
func (o *operation) apply(ctx context.Context, st *state, done heldResult[*plugin.OperationResult]) (*protocol.OperationReceipt, error) {
	result := done.result
	c, r := st.change(persistence.Commit{Blobs: o.blobs}), o.answer(result)
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

// inputs returns the inputs that the operation queues. They carry the plugin's sandbox limits and those of plan
// mode, so that a turn cannot do for a plugin what the plugin itself may not do. A source key is qualified with
// the plugin's name, as two plugins may choose the same key.
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
