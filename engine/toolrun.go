package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// cancelGrace is how long a cancelled call may still return a result of its own.
const cancelGrace = 50 * time.Millisecond

// stage is where one call of a batch is.
type stage struct {
	call    protocol.ToolCall
	ordinal int
	entry   *tool.Entry
	attempt int
	reply   *turn.ToolReply // set once the call has its result
	began   bool            // an earlier run of the daemon started it, and its result was lost
}

// callRow is the journal's row of one call: started with its attempt, then finished with its reply.
type callRow struct {
	Attempt int             `json:"attempt"`
	Reply   *turn.ToolReply `json:"reply,omitempty"`
}

// runTools runs a batch. No call runs before the fact that it is started is durable; no result is shown to the model
// before it is durable.
func (r *run) runTools(ctx context.Context, effect turn.Effect) error {
	stages, err := r.stages(effect)
	if err != nil {
		return err
	}
	if err := r.settle(ctx, stages); err != nil {
		return r.interrupted(ctx, err)
	}
	if err := r.start(ctx, effect, stages); err != nil {
		return err
	}
	r.dispatch(ctx, stages)
	return r.collect(ctx, effect, stages)
}

// stages are the calls of a batch with what the journal knows of them.
func (r *run) stages(effect turn.Effect) ([]*stage, error) {
	stages := make([]*stage, len(effect.Tools.Calls))
	for i, call := range effect.Tools.Calls {
		stages[i] = &stage{call: call, ordinal: i}
		stages[i].check(r.catalog)
	}
	for _, row := range r.journal.replay[effect.ID] {
		if row.Ordinal >= len(stages) || string(row.Hash) != string(callHash(stages[row.Ordinal].call)) {
			return nil, &JournalError{Effect: effect.ID, Kind: "tools", Diff: fmt.Sprintf("call %d is another one", row.Ordinal)}
		}
		var known callRow
		if err := json.Unmarshal(row.Body, &known); err != nil {
			return nil, fmt.Errorf("journal of call %d: %w", row.Ordinal, err)
		}
		s := stages[row.Ordinal]
		s.attempt = known.Attempt
		if row.Finished {
			s.reply = known.Reply
		} else {
			s.reply, s.began = nil, true
		}
	}
	return stages, nil
}

func callHash(c protocol.ToolCall) []byte {
	return []byte(protocol.DigestOf(encode(c)))
}

// check finds the tool and validates the arguments, before anybody is asked anything.
func (s *stage) check(catalog *tool.Catalog) {
	entry, ok := catalog.Lookup(s.call.Name)
	if !ok {
		text := fmt.Sprintf("there is no tool named %q", s.call.Name)
		if near := catalog.Nearest(s.call.Name); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		s.fail(protocol.FailInvalidRequest, "unknown_tool", text, protocol.FromRuntime)
		return
	}
	s.entry = entry
	if err := entry.Validate(s.call.Args); err != nil {
		s.fail(protocol.FailInvalidRequest, "invalid_arguments", "the arguments do not fit the tool's schema: "+err.Error(), protocol.FromRuntime)
	}
}

func (s *stage) fail(class protocol.FailureClass, code, text string, source protocol.FailureSource) {
	s.reply = &turn.ToolReply{CallID: s.call.CallID, Name: s.call.Name, Output: protocol.Fail(class, code, text, source)}
}

// start makes durable that calls are about to run.
func (r *run) start(ctx context.Context, effect turn.Effect, stages []*stage) error {
	var rows []persistence.Effect
	for _, s := range stages {
		if s.reply == nil {
			s.attempt++
			rows = append(rows, r.callRow(effect, s))
		}
	}
	if len(rows) == 0 && r.emitted == len(r.nodes) {
		return nil
	}
	return r.flush(ctx, persistence.Commit{Effects: rows})
}

func (r *run) callRow(effect turn.Effect, s *stage) persistence.Effect {
	return persistence.Effect{
		Turn: r.id, ID: effect.ID, Ordinal: s.ordinal, Kind: "call", Finished: s.reply != nil,
		Hash: callHash(s.call), Body: encode(callRow{Attempt: s.attempt, Reply: s.reply}),
	}
}

// dispatch runs the calls that have no result: all at once, except those whose tool wants to be alone.
func (r *run) dispatch(ctx context.Context, stages []*stage) {
	var order sync.Mutex
	completed := 0
	one := func(s *stage) {
		reply := r.execute(ctx, s)
		order.Lock()
		defer order.Unlock()
		reply.Order = completed
		completed++
		s.reply = &reply
	}
	var wg sync.WaitGroup
	var serial []*stage
	for _, s := range stages {
		switch {
		case s.reply != nil:
		case s.entry.Tool.Contract.Serial:
			serial = append(serial, s)
		default:
			wg.Go(func() { one(s) })
		}
	}
	wg.Wait()
	for _, s := range serial {
		one(s)
	}
}

// execute makes one attempt of a call. A call that was cancelled gets a moment to return by itself.
func (r *run) execute(ctx context.Context, s *stage) turn.ToolReply {
	began := time.Now()
	r.trace("tool_call_started", s.call)
	done := make(chan tool.Result, 1)
	ctx, cancel := callContext(ctx, s.entry.Tool.Contract)
	defer cancel()
	r.eng.turns.Go(func() { done <- r.invoke(ctx, s) })
	result := tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the call was cancelled"}}
	select {
	case result = <-done:
	case <-ctx.Done():
		select {
		case result = <-done:
		case <-time.After(cancelGrace):
		}
	}
	reply := turn.ToolReply{
		CallID: s.call.CallID, Name: s.call.Name, Control: result.Control, DurationMs: time.Since(began).Milliseconds(),
		Output: r.plugins.Project(s.call.Name, result.Output),
	}
	r.trace("tool_call_completed", reply)
	return reply
}

func callContext(ctx context.Context, c protocol.ToolContract) (context.Context, context.CancelFunc) {
	if c.TimeoutMs > 0 {
		return context.WithTimeout(ctx, time.Duration(c.TimeoutMs)*time.Millisecond)
	}
	return context.WithCancel(ctx)
}

// invoke calls the provider. Whatever goes wrong there is the call's failure, not the turn's.
func (r *run) invoke(ctx context.Context, s *stage) (result tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			r.eng.Log.Error("tool panicked", "tool", s.call.Name, "panic", p, "stack", string(debug.Stack()))
			result.Output = protocol.Fail(protocol.FailInternal, "tool_panicked", fmt.Sprintf("the tool %s crashed", s.call.Name), protocol.FromTool)
		}
	}()
	result, err := s.entry.Provider.Execute(ctx, tool.Invocation{
		SessionID: r.session.id, TurnID: r.id, CallID: s.call.CallID, Attempt: s.attempt, Name: s.call.Name, Args: s.call.Args,
		Host: &toolHost{session: r.session, turn: r.id, call: s.call.CallID},
	})
	if err != nil {
		class := protocol.FailInternal
		if errors.Is(err, context.DeadlineExceeded) {
			class = protocol.FailTimeout
		}
		result.Output = protocol.Fail(class, "tool_error", err.Error(), protocol.FromTool)
	}
	if result.Output.Status == "" {
		result.Output.Status = protocol.OutputSuccess
	}
	return result
}

// collect makes the results durable and gives them to the machine.
func (r *run) collect(ctx context.Context, effect turn.Effect, stages []*stage) error {
	var rows []persistence.Effect
	replies := make([]turn.ToolReply, len(stages))
	for i, s := range stages {
		replies[i] = *s.reply
		rows = append(rows, r.callRow(effect, s))
	}
	r.deliver(effect, turn.Response{Tools: replies})
	if r.machine.Finished() {
		r.journal.pending = nil // the turn's own commit follows at once
		return nil
	}
	return r.flush(ctx, persistence.Commit{Effects: rows})
}
