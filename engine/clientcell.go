package engine

import (
	"context"
	"errors"
	"fmt"

	"lashd/engine/audit"
	"lashd/engine/fact"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// clientCell is a code cell that a client runs while it holds the session. The goroutine of the
// request owns it.
type clientCell struct {
	*lease
	hold  *sessionHold
	calls *directCall
	id    protocol.CallID
	write bool
}

// newClientCell returns the cell of a request. w has the session, and the caller releases it.
func newClientCell(w *sessionHold, p *protocol.CodeExecuteParams, rc receipt.Request) *clientCell {
	id := directCallID(rc)
	return &clientCell{lease: w.lease, hold: w, calls: w.lease.direct(id, p.Write && rc.Key != ""), id: id, write: p.Write}
}

// run runs the cell. Unless what the cell changed is stored, the executor gets the stored variables
// back, also if the request fails or was cancelled.
func (x *clientCell) run(source string, rc receipt.Request) (*protocol.CodeExecuteResult, error) {
	language, err := x.language()
	if err != nil {
		return nil, err
	}
	if reason := x.calls.hooks.judge.mayRunCells(); reason != "" {
		return x.result(language, &turn.CellReply{ID: x.id, Error: reason}), nil
	}
	host, err := x.start(rc)
	if err == nil {
		err = x.record(source)
	}
	if err != nil {
		return nil, err
	}
	stored := false
	defer func() {
		if !stored {
			x.hold.restoreExecution()
		}
	}()
	reply, err := x.execute(host, &plugin.CodeCall{CellID: x.id, Language: language, Source: source})
	if err != nil {
		return nil, err
	}
	result := x.result(language, &reply)
	if !x.write {
		return result, nil
	}
	err = x.store(language, rc.With(result))
	stored = err == nil
	return result, err
}

// result returns the result of the cell for the client.
func (x *clientCell) result(language string, reply *turn.CellReply) *protocol.CodeExecuteResult {
	return &protocol.CodeExecuteResult{
		CellID: x.id, Language: language, Result: *reply.Result(), Calls: turn.FirstCalls(reply.Calls), DurationMs: reply.DurationMs,
	}
}

// start returns the host of the cell. If the request has an idempotency key, it commits the start of
// the cell, or finds in the journal what the cell did before a crash.
func (x *clientCell) start(rc receipt.Request) (*cell, error) {
	past, err := onState(x.hold.owner, func(_ context.Context, st *state) ([]*protocol.Message, error) { return st.history.messages() })
	if err != nil {
		return nil, err
	}
	var rows []persistence.Effect
	if x.calls.journaled {
		rows, err = x.eng.store.Effects(x.ctx, x.calls.id)
	}
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		err = x.calls.storeRows(x.ctx, []persistence.Effect{{Turn: x.calls.id, ID: 1, Kind: "code", Hash: rc.Hash, Body: []byte("{}")}})
	case !x.plugins.ReplaysCells():
		err = ErrCellInterrupted
	}
	host := newCell(x.ctx, x.calls.callMaker, x.id, 1, rows)
	host.history, host.store = func() []*protocol.Message { return past }, x.calls.storeRows
	return host, err
}

// record stores the audit record of the cell, if it needs one.
func (x *clientCell) record(source string) error {
	_, err := onState(x.hold.owner, func(ctx context.Context, st *state) (struct{}, error) {
		c := st.change(persistence.Commit{})
		audit.AddCell(c, x.id, source, x.plugins)
		return struct{}{}, st.commitUnlessEmpty(ctx, c)
	})
	return err
}

// execute runs the code and returns its reply. It fails if the cell did not repeat what it did before a
// crash, or if the request was cancelled: then the reply is not the result of the code.
func (x *clientCell) execute(host *cell, call *plugin.CodeCall) (turn.CellReply, error) {
	var reached plugin.CellHost = host
	if !x.write {
		reached = readOnlyHost{host}
	}
	a, _ := host.execute(x.ctx, call, reached)
	if x.ctx.Err() != nil {
		return a.v, x.interrupted(context.Cause(x.ctx))
	}
	reply, err := host.settle(a.v, a.err)
	switch {
	case err != nil:
		return reply, err
	case reply.Fatal != nil:
		return reply, fmt.Errorf("%w: %s", ErrCellInterrupted, reply.Fatal.Message)
	case reply.Control != nil && reply.Error == "":
		reply.Error = "The code ends a turn, and no turn is running. It ran to this point."
	}
	x.calls.hooks.trace.cell(host, call, &reply)
	return reply, nil
}

// interrupted returns the error of a cell that started and has no result. The effects of a cell that
// may not write are known: it has none.
func (x *clientCell) interrupted(err error) error {
	if err == nil || !x.write {
		return err
	}
	return &InterruptedError{"the code cell", err}
}

// store commits what the cell changed and settles the session's language, with the receipt of the
// request, which replaces the rows of the journal.
func (x *clientCell) store(language string, rc *persistence.Receipt) error {
	ctx := context.WithoutCancel(x.ctx)
	captured, err := x.eng.capture(ctx, x.plugins, x.hold.owner.stored.pluginState())
	if err == nil {
		captured, err = x.eng.captureExecution(ctx, x.plugins, captured)
	}
	if err != nil {
		return &plugin.OperationError{Code: plugin.OperationAbandoned, Name: "code/execute", Message: fmt.Sprintf("the code ran, but the variables cannot be stored: %v; they are as they were before", err)}
	}
	_, err = onState(x.hold.owner, func(ctx context.Context, st *state) (struct{}, error) {
		rows := persistence.Commit{Receipt: rc}
		if rc != nil {
			rows.Retire = []protocol.TurnID{x.calls.id}
		}
		c := st.change(rows)
		st.stored.keep(c, captured)
		fact.CodeLanguage.Settle(&st.stored.facts, c, language)
		return struct{}{}, st.commitUnlessEmpty(ctx, c)
	})
	return x.interrupted(err)
}

// readOnlyHost is the host of a cell that may not call tools.
type readOnlyHost struct{ *cell }

// errReadOnlyCell is the error of a cell without write that calls a tool.
var errReadOnlyCell = errors.New("this code only looks at the session and may call no tools; to call tools and keep variables, run it with write (lash code --write)")

// Call implements plugin.CellHost.
func (readOnlyHost) Call(context.Context, []tool.Request) ([]protocol.ToolOutput, error) {
	return nil, errReadOnlyCell
}

// restoreExecution gives the code executor the stored variables back. If it does not take them, the
// plugins are closed, and the next use opens new ones with these variables.
func (w *sessionHold) restoreExecution() {
	k, err := w.owner.plugins.lock(context.WithoutCancel(w.ctx)) // with it, nothing captures what the cell left
	if err != nil {
		return // the state is being dropped, and its plugins with it
	}
	defer k.unlock()
	values, err := onState(w.owner, func(ctx context.Context, st *state) (map[string][]byte, error) {
		st.commits++ // plugin state that was captured before this is outdated
		return st.stored.execution(ctx, "")
	})
	if err == nil {
		_, err = workgroup.CallPlugin(k.ctx, k.eng.group, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.lease.plugins.RestoreExecution(ctx, values)
		})
	}
	if err != nil {
		k.eng.Log.Warn("the code executor did not take the stored variables; reopening the session's plugins", "session", w.owner.id, "error", err)
		_ = k.drop() // it fails if the state is being dropped, which closes the plugins too
	}
}
