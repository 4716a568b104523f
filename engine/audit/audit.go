// Package audit records who decided over tool calls, and where their programs ran. The records are events of the session, so its hash chain
// protects them. Each is stored with the start of its call, or with the result of a call that was refused: it costs no commit of its own.
package audit

import (
	"slices"
	"sync"

	"lashd/engine/approval"
	"lashd/engine/change"
	"lashd/rpc/protocol"
)

// Decided is what was decided about a call. One goroutine owns it, that of the call.
type Decided struct {
	Verdict approval.Verdict
	Answer  *protocol.DecisionAnswer // to the question whether it may run; nil: lashd did not ask
	// Earlier is what an earlier run of the daemon decided about the call, which runs again; nil: nothing.
	Earlier *protocol.CallDecision
	ended   bool // Ends was called
}

// ByClient sets the verdict on a call that a client makes itself, without a question.
func (d *Decided) ByClient(v approval.Verdict) {
	if d.Verdict = v; v.Mode == protocol.ApproveAsk {
		d.Verdict.Mode = protocol.ApproveAllow
		d.Verdict.Why = protocol.ApprovalReason{By: protocol.DecidedByClient, Text: "A client made the call itself."}
	}
}

// Decision returns the decision for the item of the call; nil if lashd has not judged the call, or waits for an answer.
func (d *Decided) Decision() *protocol.CallDecision {
	if d.Verdict.Mode == "" {
		return d.Earlier
	}
	made := &protocol.CallDecision{Mode: d.Verdict.Mode, Why: d.Verdict.Why}
	if a := d.Answer; a != nil {
		made.Choice, made.By, made.Hunks, made.Reason = a.Choice, a.By, a.Hunks, a.Reason
		switch {
		case approval.Result(a) != nil:
			made.Mode = protocol.ApproveDeny
		case made.Mode == protocol.ApproveAsk:
			made.Mode = protocol.ApproveAllow
		}
	}
	if made.Mode == protocol.ApproveAsk {
		return nil
	}
	return made
}

// Starts returns the record of a call that is about to run; nil if it needs none. judged is nil for a call that runs again
// after a crash, which has its record already.
func (d *Decided) Starts(judged *approval.Request) *protocol.AuditRecord {
	if judged == nil {
		return nil
	}
	return judged.Started(d.Verdict, d.Answer)
}

// Ends returns the record of a call that was refused, or to which the sandbox refused something; nil if it needs none. Only the first call
// returns a record.
func (d *Decided) Ends(judged *approval.Request, out *protocol.ToolOutput) *protocol.AuditRecord {
	if judged == nil || d.ended {
		return nil
	}
	d.ended = true
	denied := d.Verdict.Mode == protocol.ApproveDeny || d.Answer != nil && d.Answer.Choice == protocol.ChooseReject
	switch {
	case denied:
		return judged.Refused(d.Verdict, d.Answer)
	case out.Refusal != nil && out.Refusal.Tool == "": // that of a task is recorded at its end
		return judged.RefusedInside(out.Refusal)
	}
	return nil
}

// taskDraft applies events to tasks in a change; a *live.Draft does.
type taskDraft interface {
	Add(t protocol.Task, e protocol.TaskEvent) (protocol.Task, bool)
	Change() *change.Change
}

// AddTaskEvent applies an event to a task and returns the task. If a background command or a monitor ends with it, and its sandbox refused
// something to it, the change also gets the record of that.
func AddTaskEvent(d taskDraft, t protocol.Task, e protocol.TaskEvent) protocol.Task {
	t, ok := d.Add(t, e)
	if !ok || e.Outcome == nil || e.Outcome.Refusal == nil || t.Spec.Command == nil {
		return t
	}
	refusal, command := e.Outcome.Refusal, t.Spec.Command
	r := approval.RefusedTask(command, refusal)
	r.CallID, r.TaskID, r.Tool = t.Origin.CallID, t.ID, map[protocol.TaskKind]string{protocol.TaskCommand: "start_command", protocol.TaskMonitor: "start_monitor"}[t.Spec.Kind]
	d.Change().TellOf(protocol.Event{Type: protocol.EventAuditRecorded, TurnID: t.Origin.TurnID, Audit: r})
	return t
}

// Queue holds records for the next commit. It is safe for concurrent use.
type Queue struct {
	mu     sync.Mutex
	events []change.Event
}

// Add queues a record about a call; nothing if it is nil.
func (q *Queue) Add(turn protocol.TurnID, call protocol.CallID, r *protocol.AuditRecord) {
	if r == nil {
		return
	}
	r.CallID = call
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events = append(q.events, change.Event{Event: protocol.Event{Type: protocol.EventAuditRecorded, TurnID: turn, Audit: r}})
}

// AddTo adds the queued records to a change. They stay queued until it is stored.
func (q *Queue) AddTo(c *change.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.events)
	c.Tell(slices.Clone(q.events)...)
	c.Then(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.events = q.events[n:]
	})
}

// Take returns the queued records and removes them.
func (q *Queue) Take() []change.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	q.events = nil
	return events
}
