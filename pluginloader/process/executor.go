package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// executor implements plugin.CodeExecutor: it runs code cells in the plugin's process. Its state is
// that of the interpreter, for example variables of earlier cells. The engine stores the state with
// the session, and a new process gets the last captured state.
type executor struct {
	*instance
	unstored plugin.ExecutionChange // captured from the process, but not durable yet; guarded by mu
	// seen has the globals by name, as of the newest capture. It is nil between a restore and the capture after it. Guarded by mu.
	seen     map[string]protocol.CodeGlobal
	restores int // number of calls of Restore; guarded by mu
}

// Describe implements plugin.CodeDescriber.
func (x *executor) Describe(ctx context.Context, tools []protocol.ToolManifest) (about plugin.CodeDescription, err error) {
	answer, err := ask[plugin.CodeDescription](ctx, x.instance, "code/describe", x.factory.config.Deadlines.State, nil, func(s *seat, u until) any {
		return struct {
			of
			until
			Tools []protocol.ToolManifest `json:"tools"`
		}{x.of(s), u, tools}
	})
	if err == nil {
		about = *answer
	}
	return about, err
}

// ReplaysCells implements plugin.CellReplayer.
func (x *executor) ReplaysCells() bool { return x.factory.config.Contributes.Executor.Replay }

// lastOfCell is how long a cancelled cell may still run. Until then Execute does not return, so that nothing else uses the
// interpreter. It is longer than lashd waits for an executor, which therefore knows that the cell still runs.
const lastOfCell = 6 * time.Second

// Execute implements plugin.CodeExecutor. It marks the state as changed before the cell runs,
// because a cell that fails may have changed it too.
func (x *executor) Execute(ctx context.Context, call *plugin.CodeCall, host plugin.CellHost) (turn.CellReply, error) {
	x.stain(true)
	g, tools := &grant{cell: host}, host.Tools()
	if tools == nil {
		tools = []protocol.ToolManifest{} // absent in the message has another meaning
	}
	var used *seat
	answer, err := asked[turn.CellReply](ctx, x.instance, "code/execute", x.factory.config.Deadlines.Code, lastOfCell, g, func(s *seat, u until) any {
		used = s
		return struct {
			of
			until
			*plugin.CodeCall
			Tools []protocol.ToolManifest `json:"tools,omitzero"` // absent: those of the last cell
		}{x.of(s), u, call, x.unknownTools(s, tools)}
	})
	x.keepTools(used, tools, err)
	switch {
	case child.CodeOf(err) == Crashed && ctx.Err() == nil:
		return turn.CellReply{Error: fmt.Sprintf("The process that ran the code ended, perhaps because it used too much memory. "+
			"The globals are as they were before the cell. (%v)", err)}, nil
	case err != nil:
		return turn.CellReply{}, err
	case len(answer.Calls) > 0 || len(answer.Shown) > 0 || answer.Fatal != nil || answer.ID != "":
		return turn.CellReply{}, &Error{Plugin: x.factory.ID(), Code: Protocol, Err: errCalls}
	}
	return *answer, nil
}

// unknownTools returns the tools to send to a process with a cell: all, or nil if the last cell had the same. A hundred tools are
// 30 KB of JSON. Lists are compared by identity, because a catalog returns the same one as long as it does not change.
func (x *executor) unknownTools(s *seat, tools []protocol.ToolManifest) []protocol.ToolManifest {
	x.mu.Lock()
	defer x.mu.Unlock()
	known := s.tools
	if known == nil || len(known) != len(tools) || len(tools) > 0 && &known[0] != &tools[0] {
		return tools
	}
	return nil
}

// keepTools records that the process has the tools of a cell. If the cell failed, the process may not have read them, and gets them again.
func (x *executor) keepTools(s *seat, tools []protocol.ToolManifest, failed error) {
	if s == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.tools = tools; failed != nil {
		s.tools = nil
	}
}

// errCalls rejects an answer with members that only lashd sets: a process calls tools with host/callTool.
var errCalls = errors.New("code/execute: the answer must not contain id, calls, shown or fatal")

// stain records whether the state has changed since it was last captured.
func (x *executor) stain(dirty bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dirty = dirty
}

// Dirty implements plugin.ExecutionState.
func (x *executor) Dirty() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dirty || len(x.unstored.Changed)+len(x.unstored.Removed) > 0
}

// codeChange is the answer of code/snapshot: what changed since the one before.
type codeChange struct {
	Changed map[string][]byte     `json:"changed,omitempty"`
	Removed []string              `json:"removed,omitempty"`
	Globals []protocol.CodeGlobal `json:"globals,omitempty"` // all that there are, or with Partial those that changed
	Partial bool                  `json:"partial,omitempty"` // the other globals are as in the answer before
	More    bool                  `json:"more,omitempty"`    // the rest follows in the next answer
}

// Snapshot implements plugin.ExecutionState. What it captured before and what never became durable
// is part of the result. It keeps all values for a later process.
func (x *executor) Snapshot(ctx context.Context) (plugin.ExecutionChange, error) {
	if x.seated() != nil { // without a process, nothing has changed since the newest capture
		if err := x.fetchChange(ctx); err != nil {
			return plugin.ExecutionChange{}, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dirty = false
	return plugin.ExecutionChange{Changed: maps.Clone(x.unstored.Changed), Removed: slices.Clone(x.unstored.Removed)}, nil
}

// fetchChange asks the process for the change since the newest capture and adds it to unstored. A large
// change comes in several answers.
func (x *executor) fetchChange(ctx context.Context) error {
	for {
		if more, err := x.fetchPart(ctx); err != nil || !more {
			return err
		}
	}
}

// fetchPart asks for one part of the change, and reports whether there are more.
func (x *executor) fetchPart(ctx context.Context) (more bool, err error) {
	x.mu.Lock()
	before := x.restores
	x.mu.Unlock()
	answer, err := ask[codeChange](ctx, x.instance, "code/snapshot", x.factory.config.Deadlines.State, nil, func(s *seat, u until) any {
		return struct {
			of
			until
		}{x.of(s), u}
	})
	if err != nil {
		return false, err
	}
	next := plugin.ExecutionChange{Changed: answer.Changed, Removed: answer.Removed}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.restores != before {
		return false, nil // the answer is about a state that is gone
	}
	x.code = next.AppliedTo(maps.Clone(x.code))
	x.see(answer)
	x.unstored = next.After(x.unstored)
	return answer.More, nil
}

// see updates what is known about the globals. A list of all globals would cost a session with 1,000 of them 1.5 ms a cell, so
// an executor may list only those that changed. The caller holds mu.
func (x *executor) see(answer *codeChange) {
	if x.seen == nil && len(answer.Globals) == 0 && len(x.code) > 0 {
		return // the process restores its values later
	}
	if !answer.Partial || x.seen == nil {
		x.seen = map[string]protocol.CodeGlobal{}
	}
	for _, name := range answer.Removed {
		delete(x.seen, name)
	}
	for _, g := range answer.Globals {
		x.seen[g.Name] = g
	}
}

// Stored implements plugin.ExecutionState. The engine calls it after the commit with the newest capture.
func (x *executor) Stored() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unstored = plugin.ExecutionChange{}
}

// Globals implements plugin.GlobalsLister. After a restore it asks the process, because only the process knows the types
// of values. If that fails, it lists the values without types.
func (x *executor) Globals(ctx context.Context) ([]protocol.CodeGlobal, error) {
	if x.untyped() {
		_ = x.fetchChange(ctx) // a process that cannot answer fails its next cell
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []protocol.CodeGlobal
	if x.seen != nil {
		for _, name := range slices.Sorted(maps.Keys(x.seen)) {
			all = append(all, x.seen[name])
		}
		return all, nil
	}
	for _, name := range slices.Sorted(maps.Keys(x.code)) {
		all = append(all, protocol.CodeGlobal{Name: name, Size: int64(len(x.code[name]))})
	}
	return all, nil
}

// untyped reports whether there are values whose types are not known and can be asked for. After a cell they cannot: the
// answer would include changes of the cell that are not captured yet.
func (x *executor) untyped() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen == nil && len(x.code) > 0 && !x.dirty
}

// Restore implements plugin.ExecutionState. A running process gets the state at once; it loses the
// variables of its current state. If no process runs, the next one gets the state on first use.
func (x *executor) Restore(ctx context.Context, values map[string][]byte) error {
	x.mu.Lock()
	s := x.place
	x.restores++
	x.code, x.dirty, x.seen, x.unstored = values, false, nil, plugin.ExecutionChange{}
	x.mu.Unlock()
	if s == nil || !s.life.alive() {
		return nil
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.err != nil {
		return nil
	}
	return x.giveCode(ctx, s, values)
}

// maxRestored is how many bytes of values one code/restore carries, unless a single value is larger.
// The limit of a message is well above it, and values grow by a third in JSON. Smaller messages let
// the daemon and the process work at the same time.
const maxRestored = 1 << 20

// inTransit is how many messages with values are encoded, sent and decoded at the same time.
const inTransit = 3

// giveCode sends the values of the executor to the process, in as many messages as they need. The
// last one goes when all others are answered. No values reset the executor.
func (i *instance) giveCode(ctx context.Context, s *seat, values map[string][]byte) error {
	parts := splitValues(values)
	give := func(ctx context.Context, part map[string][]byte, more bool) error {
		_, err := put[nothing](ctx, s, "code/restore", i.factory.config.Deadlines.State, 0, nil, func(s *seat, u until) any {
			return struct {
				of
				until
				Values map[string][]byte `json:"values"`
				More   bool              `json:"more,omitempty"` // further values follow; the state is replaced with the last of them
			}{i.of(s), u, part, more}
		})
		return err
	}
	last := len(parts) - 1
	sending, all := errgroup.WithContext(ctx)
	sending.SetLimit(inTransit)
	for _, part := range parts[:last] {
		sending.Go(func() error { return give(all, part, true) })
	}
	err := sending.Wait()
	if err == nil {
		err = give(ctx, parts[last], false)
	}
	if err != nil {
		return fmt.Errorf("code executor: %w", err)
	}
	return nil
}

// splitValues divides values into parts of at most maxRestored bytes. There is at least one, which may be empty.
func splitValues(values map[string][]byte) []map[string][]byte {
	parts, size := []map[string][]byte{{}}, 0
	for _, name := range slices.Sorted(maps.Keys(values)) {
		more := len(name) + len(values[name])
		if size > 0 && size+more > maxRestored {
			parts, size = append(parts, map[string][]byte{}), 0
		}
		parts[len(parts)-1][name] = values[name]
		size += more
	}
	return parts
}

// cellHost is the part of a grant that a running code cell has.
func (g *grant) cellHost() (plugin.CellHost, error) {
	if g.cell == nil {
		return nil, &plugin.UnavailableError{Capability: "requests of code cells"}
	}
	return g.cell, nil
}

// cellCalls calls tools for a code cell. The cell's clock stands still: its time limit is for the code.
func cellCalls(ctx context.Context, g *grant, calls []tool.Request) (out []protocol.ToolOutput, err error) {
	late := g.clock.still(func() { out, err = g.cell.Call(ctx, calls) })
	return out, errors.Join(late, err)
}

// now implements host/now: the time, in nanoseconds since 1970. A cell that runs again gets the same.
func now(ctx context.Context, g *grant, _ *granted) (*struct {
	UnixNs int64 `json:"unixNs"`
}, error) {
	host, err := g.cellHost()
	if err != nil {
		return nil, err
	}
	t, err := host.Now(ctx)
	return &struct {
		UnixNs int64 `json:"unixNs"`
	}{t.UnixNano()}, err
}

// random implements host/random: 32 random bytes. A cell that runs again gets the same.
func random(ctx context.Context, g *grant, _ *granted) (*struct {
	Bytes []byte `json:"bytes"`
}, error) {
	host, err := g.cellHost()
	if err != nil {
		return nil, err
	}
	data, err := host.Random(ctx)
	return &struct {
		Bytes []byte `json:"bytes"`
	}{data}, err
}

// conversation implements host/history: the messages that the model sees.
func conversation(_ context.Context, g *grant, _ *granted) (*list[*protocol.Message], error) {
	host, err := g.cellHost()
	if err != nil {
		return nil, err
	}
	return &list[*protocol.Message]{host.History()}, nil
}
