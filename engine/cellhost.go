package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// cell is a code cell that runs. It implements plugin.CellHost. To the journal, a cell is a call that
// makes calls: its start is the row of the effect, and each call and value that it gets has a row
// after that. The executor's goroutine uses it, one method at a time; the goroutine of the turn uses
// it before and after.
type cell struct {
	*toolHost
	outer    *toolCall
	history  func() []*protocol.Message
	store    func(context.Context, []persistence.Effect) error // commits rows of the journal
	values   []persistence.Effect                              // rows of values that are not stored yet
	repeated bool                                              // an earlier run of the daemon started it
	failed   error                                             // why the cell could not repeat what it did before; nil: it did
	began    time.Time                                         // when the code began to run
	close    context.CancelFunc
}

// newCell returns the host of a cell with what the journal has of an earlier run of it. m makes its
// calls, and the caller sets history and store.
func newCell(ctx context.Context, m *callMaker, id protocol.CallID, effect uint64, rows []persistence.Effect) *cell {
	outer := &toolCall{ToolCall: protocol.ToolCall{CallID: id, Name: "code"}, effect: effect, cell: true}
	outer.sandboxed = m.hooks.judge.ceilings().Sandboxed
	for _, row := range rows {
		if row.Ordinal >= maxNestedCalls {
			outer.inner.addRow(row.Ordinal%maxNestedCalls, row)
		}
	}
	life, end := context.WithCancel(ctx)
	return &cell{toolHost: &toolHost{maker: m, call: outer, life: life}, outer: outer, repeated: len(rows) > 0, close: end}
}

// newCell returns the host of a cell of the turn.
func (r *run) newCell(ctx context.Context, effect turn.Effect, rows []persistence.Effect) *cell {
	m := &callMaker{session: r.session, caller: r, hooks: r.hooks, catalog: r.prompt.catalog, frame: r.journal.begin.Frame}
	c := newCell(ctx, m, protocol.CallID(fmt.Sprintf("%s/cell/%d", r.id, effect.ID)), effect.ID, rows)
	c.outer.inner.item = r.journal.runningCell()
	c.store = func(ctx context.Context, rows []persistence.Effect) error { return r.store.flush(ctx, rows) }
	c.history = r.cellHistory
	return c
}

// cellHistory returns the conversation that a cell of the turn sees, with the messages of the turn.
func (r *run) cellHistory() []*protocol.Message {
	all := r.prompt.visibleHistory()
	for _, n := range r.journal.nodes {
		if n.Message != nil {
			all = append(all, n.Message)
		}
	}
	return all
}

// execute runs code in the executor and closes the host. If the executor does not return soon after
// ctx is done, execute abandons the cell and reports false.
func (c *cell) execute(ctx context.Context, call *plugin.CodeCall, host plugin.CellHost) (a answer[turn.CellReply], returned bool) {
	plugins, done := c.maker.hooks.plugins, make(chan answer[turn.CellReply], 1)
	c.began = time.Now()
	c.maker.hooks.trace.cell(c, call, nil)
	c.maker.eng.group.GoCall(func() {
		reply, err := plugins.Execute(c.life, call, host)
		done <- answer[turn.CellReply]{reply, err}
	})
	a, returned = withinGrace(ctx, done)
	c.end()
	if !returned {
		plugins.AbandonCell()
	}
	return a, returned
}

// Tools implements plugin.CellHost.
func (c *cell) Tools() []protocol.ToolManifest { return c.maker.catalog.CellManifests() }

// History implements plugin.CellHost.
func (c *cell) History() []*protocol.Message { return c.history() }

// Call implements plugin.CellHost. Values that the cell got before are stored first, because the
// calls may depend on them.
func (c *cell) Call(ctx context.Context, wanted []tool.Request) ([]protocol.ToolOutput, error) {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if len(c.values) > 0 {
		if err := c.store(ctx, c.values); err != nil {
			return nil, err
		}
		c.values = nil
	}
	out, err := c.maker.runNested(ctx, c.outer, wanted)
	c.note(err)
	return out, err
}

// Now implements plugin.CellHost.
func (c *cell) Now(ctx context.Context) (time.Time, error) {
	var ns int64
	err := c.value(ctx, "now", func() any { return time.Now().UnixNano() }, &ns)
	return time.Unix(0, ns), err
}

// Random implements plugin.CellHost.
func (c *cell) Random(ctx context.Context) ([]byte, error) {
	var data []byte
	err := c.value(ctx, "random", func() any {
		fresh := make([]byte, 32)
		_, _ = rand.Read(fresh) // never fails
		return fresh
	}, &data)
	return data, err
}

// valuePrefix begins the name of a journal row that holds a value instead of a call. No tool has
// such a name.
const valuePrefix = "."

// value decodes into v what fresh returns, or what it returned when the cell ran before a crash.
func (c *cell) value(ctx context.Context, name string, fresh func() any, v any) error {
	_, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	s, err := c.maker.nestedCall(c.outer, tool.Request{Name: valuePrefix + name, Args: json.RawMessage(`{}`)})
	if err != nil {
		c.note(err)
		return err
	}
	if !s.stored {
		s.answer(protocol.ToolOutput{Status: protocol.OutputSuccess, Value: encode(fresh())})
		c.values = append(c.values, c.maker.row(s))
	}
	return json.Unmarshal(s.reply.Output.Value, v)
}

// note remembers that the cell asked for something else than before the crash. Its turn fails then,
// even if the code handles the error.
func (c *cell) note(err error) {
	if nondeterministic(err) != nil {
		c.failed = err
	}
}

// end closes the host: calls that run are cancelled, and the cell can make no more.
func (c *cell) end() {
	c.close()
	c.toolHost.end()
}

// settle returns the result of the cell from that of its executor, with the calls that it made.
func (c *cell) settle(got turn.CellReply, failed error) (turn.CellReply, error) {
	if failed != nil {
		got = turn.CellReply{Error: failed.Error()}
	}
	var calls turn.ToolReply
	c.outer.addNested(&calls)
	if err := checkOverdue(c.outer.inner.calls); err != nil {
		return got, err
	}
	got.ID, got.Calls, got.Shown = c.outer.CallID, calls.Calls, c.outer.shownCalls()
	got.DurationMs = time.Since(c.began).Milliseconds()
	if got.Control == nil && got.Error == "" {
		got.Control = calls.Control
	}
	if c.failed != nil {
		got.Fatal = nondeterministic(c.failed)
	}
	return storableReply(got), nil
}

// isValue reports whether a row of the journal holds a value and not a call.
func (s *toolCall) isValue() bool { return strings.HasPrefix(s.Name, valuePrefix) }
