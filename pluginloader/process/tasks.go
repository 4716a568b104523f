package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// taskRun is what a plugin is told of a task that it is to work at.
type taskRun struct {
	of
	until
	Name string        `json:"name"` // of the handler
	Task protocol.Task `json:"task"`
}

// taskWord is what a plugin is told of a task that it works at.
type taskWord struct {
	of
	TaskID  protocol.TaskID `json:"taskId"`
	Signal  any             `json:"signal,omitempty"`
	Stopped bool            `json:"stopped,omitempty"` // it is not waited for any more
}

// handler is the work of a task, done by the process: one call that takes as long as the work.
func (i *instance) handler(name string) plugin.TaskFunc {
	return func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
		s, err := i.enter(ctx)
		if err != nil {
			return i.lostWork(ctx, run, err)
		}
		passing, stop := context.WithCancel(ctx)
		defer stop()
		i.factory.running.Go(func() { i.passWords(passing, s, run) })
		g := &grant{host: run.Host}
		answer, err := put[struct {
			Outcome *protocol.TaskOutcome `json:"outcome,omitempty"`
		}](ctx, s, "task/run", maxDeadline, patience, g, func(s *seat, u until) any {
			return taskRun{i.of(s), u, name, run.Task}
		})
		if err != nil {
			return i.lostWork(ctx, run, err)
		}
		return answer.Outcome
	}
}

// lostWork is what a task comes to that the process did not bring to an end. What the process answered with, it has failed with.
func (i *instance) lostWork(ctx context.Context, run *plugin.TaskRun, err error) *protocol.TaskOutcome {
	e, ok := errors.AsType[*Error](err)
	switch {
	case ctx.Err() != nil:
		return nil
	case ok && e.Code != Failed:
		return lost(run, err.Error())
	}
	return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: string(Failed), Message: err.Error()}
}

// lost is the outcome of work that ended with the process.
func lost(run *plugin.TaskRun, reason string) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskLost, Evidence: &protocol.TaskEvidence{
		Writer: protocol.WriterDrain, Incarnation: run.Task.Incarnation, Attempts: run.Task.Attempt, Reason: reason,
	}}
}

// passWords tells the process what is sent to a task, and that it shall end.
func (i *instance) passWords(ctx context.Context, s *seat, run *plugin.TaskRun) {
	asked := run.Asked
	for {
		select {
		case signal := <-run.Signals:
			s.life.tell("task/signal", taskWord{of: i.of(s), TaskID: run.Task.ID, Signal: signal})
		case <-asked:
			s.life.tell("task/cancel", taskWord{of: i.of(s), TaskID: run.Task.ID})
			asked = nil
		case <-ctx.Done():
			return
		}
	}
}

// maxRegistered is how many tasks a process may work at by itself.
const maxRegistered = 256

var errManyTasks = fmt.Errorf("the process already runs %d tasks", maxRegistered)

// registered is a task at which the process works by itself, until it says that it is done.
type registered struct {
	seat    *seat
	id      protocol.TaskID
	outcome chan *protocol.TaskOutcome // has room for one
}

// registration is a task with what its plugin may do for as long as it lasts.
type registration struct {
	Task     protocol.Task `json:"task"`
	Grant    string        `json:"grant,omitempty"`
	Existing bool          `json:"existing,omitempty"` // it was registered before; then there is no grant
}

var errNotBound = &paramsError{errors.New("/spec/recovery: must be ownerBound or external for work that the process does by itself")}

// taskRegister makes a task of work that the process does by itself.
func taskRegister(ctx context.Context, g *grant, p *struct {
	granted
	plugin.TaskStart
}) (*registration, error) {
	if p.TaskID == "" {
		p.TaskID = protocol.NewTaskID()
	}
	r := &registered{g.seat, p.TaskID, make(chan *protocol.TaskOutcome, 1)}
	p.Spec.Plugin = g.life.config.ID
	switch p.Spec.Recovery {
	case protocol.RecoverExternal:
	case protocol.RecoverOwner:
		p.Work = r.work
	default:
		return nil, errNotBound
	}
	if g.life.tasks.Load() >= maxRegistered {
		return nil, errManyTasks
	}
	done, err := onTask(ctx, g, &p.TaskStart, plugin.TaskService.StartTask)
	switch {
	case err != nil:
		return nil, err
	case done.Existing:
		return &registration{Task: done.Task, Existing: true}, nil
	}
	own := &grant{host: forTask(g.host), life: g.life, seat: g.seat}
	if p.Work != nil {
		own.task = r
	}
	g.life.accompany(ctx, own, done.Task)
	return &registration{Task: done.Task, Grant: own.id}, nil
}

// forTask is what a task may do of what the call might that has registered it.
func forTask(host plugin.Capabilities) plugin.Capabilities {
	host.Models = nil
	return host
}

// accompany makes a grant good for as long as a task lives, and the process.
func (l *life) accompany(ctx context.Context, g *grant, t protocol.Task) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	end := l.grants.give(ctx, g)
	l.tasks.Add(1)
	l.calls.Go(func() {
		defer l.tasks.Add(-1)
		defer end()
		defer cancel()
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = g.host.Tasks.AwaitTasks(ctx, &protocol.TaskWaitParams{SessionID: t.SessionID, TaskIDs: []protocol.TaskID{t.ID}})
		}()
		select {
		case <-over:
		case <-l.process.Done():
			cancel()
			<-over
		}
	})
}

// work is what lashd has to do for the task meanwhile: it waits.
func (r *registered) work(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
	passing, stop := context.WithCancel(ctx)
	defer stop()
	r.seat.of.factory.running.Go(func() { r.seat.of.passWords(passing, r.seat, run) })
	select {
	case out := <-r.outcome:
		return out
	case <-r.seat.life.over: // and not before all is heard that it has said
		return r.last(lost(run, "the process of its plugin has ended"))
	case <-ctx.Done():
	}
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case out := <-r.outcome:
		return out
	case <-grace.C:
		r.seat.life.tell("task/cancel", taskWord{of: r.seat.of.of(r.seat), TaskID: r.id, Stopped: true})
	case <-r.seat.life.over:
	}
	return r.last(nil)
}

// last is what the process has said of the task before it ended, if it has.
func (r *registered) last(otherwise *protocol.TaskOutcome) *protocol.TaskOutcome {
	select {
	case out := <-r.outcome:
		return out
	default:
		return otherwise
	}
}

// complete is how the process ends the task. It answers when that is durable.
func (r *registered) complete(ctx context.Context, g *grant, out *protocol.TaskOutcome) (*taskAnswer, error) {
	switch out.Kind {
	case protocol.TaskDone, protocol.TaskError, protocol.TaskExited, protocol.TaskSignal, protocol.TaskStopped:
	default:
		return nil, &paramsError{errors.New("/outcome/kind: must be completed, failed, exited, signaled or stopped")}
	}
	select {
	case r.outcome <- out:
	default: // it has said before how the task ends
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.seat.of.factory.config.Deadlines.State) // the grant ends with the task
	defer cancel()
	w, err := g.host.Tasks.AwaitTasks(ctx, &protocol.TaskWaitParams{TaskIDs: []protocol.TaskID{r.id}})
	if err != nil {
		return nil, err
	}
	return &taskAnswer{w.Settled[0]}, nil
}
