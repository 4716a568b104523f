package engine

import (
	"context"
	"maps"
	"slices"

	"lashd/engine/fact"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// Code is the API of a session's code cells and of the variables that they set. Its methods are safe
// for concurrent use, and load the session if needed.
type Code struct{ eng *Engine }

// State returns how a session runs code, and its variables. It fails with *NoCodeError if the
// session's driver runs no code. While a cell runs, it returns the stored variables.
func (c *Code) State(ctx context.Context, p *protocol.SessionParams) (*protocol.CodeStateResult, error) {
	l, err := c.eng.lend(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	defer l.release()
	r := &protocol.CodeStateResult{Driver: l.row.Config.Driver, Executor: l.plugins.Executor()}
	if r.Language, err = l.language(); err != nil {
		return nil, err
	}
	globals, err := workgroup.CallPlugin(l.ctx, c.eng.group, l.plugins.Globals)
	if err != nil && l.ctx.Err() == nil { // a cell is running, or the executor fails
		r.Stale = true
		globals, err = l.storedGlobals()
	}
	r.Globals = list(globals)
	return r, err
}

// runsCode fails with *NoCodeError if the session's driver runs no code, or if no plugin does.
func (l *lease) runsCode() error {
	if l.plugins.WritesCode() && l.plugins.Executes() {
		return nil
	}
	return &NoCodeError{l.id, l.row.Config.Driver}
}

// language returns the language of the session's cells. It fails with *LanguageChangedError if the
// executor runs another language than the cells before.
func (l *lease) language() (string, error) {
	made, err := l.set.preambleOf(l.ctx, l.catalog, l.plugins)
	if err != nil {
		return "", err
	}
	settled, err := onState(l.owner, func(_ context.Context, st *state) (string, error) {
		settled, _ := fact.CodeLanguage.Of(&st.stored.facts)
		return settled, nil
	})
	switch {
	case made.Language == "":
		err = &NoCodeError{l.id, l.row.Config.Driver}
	case err == nil && settled != "" && settled != made.Language:
		err = &LanguageChangedError{settled, made.Language}
	}
	return made.Language, err
}

// storedGlobals lists the stored variables, ordered by name. Their types are not stored.
func (l *lease) storedGlobals() (all []protocol.CodeGlobal, err error) {
	values, err := onState(l.owner, func(ctx context.Context, st *state) (map[string][]byte, error) { return st.stored.execution(ctx, "") })
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, protocol.CodeGlobal{Name: name, Size: int64(len(values[name]))})
	}
	return all, err
}

// Execute runs a code cell for a client, without a model and outside any turn. It needs an idle
// session, otherwise it fails with *TurnActiveError or ErrSessionInUse, and no turn starts while the
// cell runs.
//
// Without p.Write the cell calls no tools, and the executor gets the stored variables back
// afterwards. With p.Write its calls are judged like those of Tools.Call, and the variables that it
// changed are stored with the receipt of the request. With an idempotency key the cell is journaled:
// after a crash, a repetition runs it again from its start, with the results of the calls that were
// made; an executor that does not repeat cells fails with ErrCellInterrupted instead.
func (c *Code) Execute(ctx context.Context, p *protocol.CodeExecuteParams) (*protocol.CodeExecuteResult, error) {
	if p.Source == "" {
		return nil, param.Bad("/source", "is empty")
	}
	return receipt.Once(ctx, c.eng.receipts, "code/execute", p.Key(), p, func(rc receipt.Request) (*protocol.CodeExecuteResult, error) {
		w, err := c.eng.hold(ctx, p.SessionID, (*lease).runsCode, admitIdle)
		if err != nil {
			return nil, err
		}
		defer w.release()
		return newClientCell(w, p, rc).run(p.Source, rc)
	})
}

// admitIdle refuses a request that must not wait for a session that is in use.
func admitIdle(st *state) error {
	if st.holds.awaited() {
		return ErrSessionInUse
	}
	return st.idle()
}
