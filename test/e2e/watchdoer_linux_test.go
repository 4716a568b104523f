package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// doer makes one request after another in a session, each effective once, across restarts of the
// daemon.
type doer struct {
	*watch
	id       protocol.SessionID
	random   *rand.Rand
	number   int
	lost     *request          // a request without an answer
	turns    []protocol.TurnID // acknowledged turns
	external []protocol.TaskID
	rewinds  map[protocol.Seq]protocol.TurnID
	calm     bool // the session was idle a moment ago
}

func (d *doer) work(ctx context.Context) {
	p := d.dial("")
	defer p.conn.Close()
	for ctx.Err() == nil {
		if d.lost == nil {
			d.number++
			d.lost = d.wants()
		}
		if d.send(p) != nil {
			return
		}
		time.Sleep(time.Duration(d.random.IntN(40)) * time.Millisecond)
	}
}

// send sends a request. It fails if the daemon has died.
func (d *doer) send(p *peer) error {
	answer, err := try[json.RawMessage](p, d.lost.method, d.lost.params)
	code, kind := refusal(err)
	if err != nil && (code == 0 || kind == protocol.KindShuttingDown) {
		return err
	}
	if err == nil && d.lost.then != nil {
		d.lost.then(answer)
	}
	d.lost = nil // a rejection is legitimate here: the turn has ended, or the session is not idle
	return nil
}

func (d *doer) mutation() protocol.Mutation {
	return protocol.Mutation{IdempotencyKey: fmt.Sprintf("%s-%d", d.id, d.number)}
}

// wants returns the next request.
func (d *doer) wants() *request {
	if d.calm {
		d.calm = false
		return d.rewind()
	}
	switch n := d.random.IntN(24); {
	case n < 9 || len(d.turns) == 0:
		return d.turn(d.prompt(), protocol.BusyQueue)
	case n < 13:
		return d.turn(d.prompt(), protocol.BusySteer)
	case n < 15:
		return &request{method: "turn/interrupt", params: protocol.TurnInterruptParams{Mutation: d.mutation(), TurnID: d.newest()}}
	case n < 17:
		return d.note()
	case n < 19:
		return d.task()
	case n < 20 && len(d.external) > 0:
		return d.complete()
	case n < 21:
		return &request{method: "session/setTitle", params: protocol.SessionSetTitleParams{Mutation: d.mutation(), SessionID: d.id, Title: fmt.Sprint("title ", d.number)}}
	}
	return d.rest()
}

// rest waits a while for an idle session, in which a rewind is possible.
func (d *doer) rest() *request {
	return &request{method: "session/wait", params: protocol.SessionWaitParams{SessionID: d.id, TimeoutMs: 500}, then: func(answer json.RawMessage) {
		var r protocol.SessionWaitResult
		d.decode(answer, &r)
		d.calm = r.State == protocol.SessionIdle
	}}
}

func (d *doer) newest() protocol.TurnID { return d.turns[len(d.turns)-1] }

// prompt makes the model think, perhaps call tools, and answer.
func (d *doer) prompt() string {
	marker := fmt.Sprintf("[[fake think=%d deltas=%d size=7 us=%d]]", d.random.IntN(6), 1+d.random.IntN(30), d.random.IntN(3000))
	if d.random.IntN(2) == 0 {
		tool := fakemodel.ToolMarker("shell", mustArgs(shellArgs{"echo ran"}))
		marker = strings.TrimSuffix(tool, "]]") + fmt.Sprintf(" calls=%d rounds=%d", 1+d.random.IntN(3), 1+d.random.IntN(2)) + strings.TrimPrefix(marker, "[[fake")
	}
	return fmt.Sprintf("%d %s", d.number, marker)
}

func (d *doer) turn(prompt string, busy protocol.WhenBusy) *request {
	params := protocol.TurnStartParams{Mutation: d.mutation(), SessionID: d.id, Input: text(prompt), WhenBusy: busy}
	return &request{method: "turn/start", params: params, then: func(answer json.RawMessage) {
		var r protocol.TurnStartResult
		d.decode(answer, &r)
		d.turns = append(d.turns, r.TurnID)
	}}
}

func (d *doer) decode(answer json.RawMessage, into any) {
	if err := json.Unmarshal(answer, into); err != nil {
		d.t.Errorf("%s: %v", answer, err)
	}
}

// note adds an item to the history outside turns.
func (d *doer) note() *request {
	m := &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: fmt.Sprint("note ", d.number)}}}
	return &request{method: "graph/append", params: protocol.GraphAppendParams{Mutation: d.mutation(), SessionID: d.id, Nodes: []protocol.NodeBody{{Message: m}}}}
}

func (d *doer) task() *request {
	id := protocol.TaskID(fmt.Sprintf("tsk_%s_%d", d.id, d.number))
	spec := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "sleep 0.1"}}
	if d.random.IntN(2) == 0 {
		spec = protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Ended: &protocol.TaskWake{}}
	}
	params := protocol.TaskStartParams{Mutation: d.mutation(), SessionID: d.id, TaskID: id, Spec: spec}
	return &request{method: "task/start", params: params, then: func(json.RawMessage) {
		if spec.Kind == protocol.TaskOther {
			d.external = append(d.external, id)
		}
	}}
}

func (d *doer) complete() *request {
	params := protocol.TaskCompleteParams{Mutation: d.mutation(), TaskParams: protocol.TaskParams{SessionID: d.id, TaskID: d.external[0]}}
	params.Outcome = protocol.TaskOutcome{Kind: protocol.TaskDone}
	d.external = d.external[1:]
	return &request{method: "task/complete", params: params}
}

func (d *doer) rewind() *request {
	turn := d.turns[max(0, len(d.turns)-1-d.random.IntN(2))]
	params := protocol.SessionRewindParams{Mutation: d.mutation(), SessionID: d.id, ToTurn: turn}
	return &request{method: "session/rewind", params: params, then: func(answer json.RawMessage) {
		var r protocol.SessionRewindResult
		d.decode(answer, &r)
		d.rewinds[r.Seq] = turn
	}}
}

// finish waits for the end of all work except external tasks.
func (d *doer) finish(p *peer) {
	if d.lost != nil && d.send(p) != nil {
		d.t.Errorf("no answer to %s", d.lost.method)
	}
	eventually(d.t, "all is done", func() error {
		if err := d.answer(p); err != nil {
			return err
		}
		if r := ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: d.id, TimeoutMs: 50}); r.State != protocol.SessionIdle {
			return fmt.Errorf("%s is %s", d.id, r.State)
		}
		for _, t := range ask[protocol.TaskListResult](p, "task/list", protocol.TaskListParams{SessionID: d.id, Live: true}).Data {
			if t.Spec.Kind == protocol.TaskCommand {
				return fmt.Errorf("%s is %s", t.ID, t.State)
			}
		}
		return nil
	})
}
