package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// taskRun holds the parameters of task/run.
type taskRun struct {
	of
	until
	Name string        `json:"name"` // of the handler
	Task protocol.Task `json:"task"`
}

// taskWord is a notification about a task in progress.
type taskWord struct {
	of
	TaskID  protocol.TaskID `json:"taskId"`
	Signal  any             `json:"signal,omitempty"`
	Stopped bool            `json:"stopped,omitempty"` // lashd no longer waits for the task
}

// handler returns the work of a task: one task/run call for as long as the work takes. The engine
// calls it on the task's goroutine. While the call runs, signals and a request to cancel are
// forwarded to the process.
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

// lostWork returns the outcome of a task that the process did not finish. An error answer of the
// plugin is a failure. After a crash the work is lost, and the task's recovery decides whether it
// runs again. After the end of ctx there is no outcome: the engine knows why it ended.
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

// lost returns the outcome of work that ended with the process.
func lost(run *plugin.TaskRun, reason string) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskLost, Evidence: &protocol.TaskEvidence{
		Writer: protocol.WriterDrain, Incarnation: run.Task.Incarnation, Attempts: run.Task.Attempt, Reason: reason,
	}}
}

// passWords forwards signals and the request to cancel to the process, until ctx ends. A signal
// that the process misses at its end is lost with it.
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

// maxRegistered is how many tasks a process may run by itself.
const maxRegistered = 256

// errManyTasks rejects a registration beyond maxRegistered.
var errManyTasks = fmt.Errorf("the process already runs %d tasks", maxRegistered)

// registered is a task that the process runs by itself until it calls host/taskComplete.
type registered struct {
	seat    *seat
	id      protocol.TaskID
	outcome chan *protocol.TaskOutcome // buffered, one value
}

// registration is the answer to host/taskRegister: the task, and a grant for as long as it runs.
type registration struct {
	Task     protocol.Task `json:"task"`
	Grant    string        `json:"grant,omitempty"`
	Existing bool          `json:"existing,omitempty"` // the task was registered before; then there is no grant
}

// errNotBound rejects tasks that lashd would have to run again.
var errNotBound = &paramsError{errors.New("/spec/recovery: must be ownerBound or external for a task that the process runs by itself")}

// taskRegister implements host/taskRegister. It creates a task for work that the process does by
// itself, outside of any call. The plugin gets a grant that is valid as long as the task and the
// process live. It ends the task with host/taskComplete.
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

// forTask returns the rights of a task: those of the call that registered it, without model calls.
func forTask(host plugin.Capabilities) plugin.Capabilities {
	host.Models = nil
	return host
}

// accompany keeps a grant valid until the task or the process ends. It waits for the task on its
// own goroutine, which run waits for at the end of the process.
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

// work is lashd's part of the task: it waits for the process to report the outcome. If the process
// ends first, the work is lost, unless the outcome was in its last output. After a request to
// cancel, the process has a grace period to report.
func (r *registered) work(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
	passing, stop := context.WithCancel(ctx)
	defer stop()
	r.seat.of.factory.running.Go(func() { r.seat.of.passWords(passing, r.seat, run) })
	select {
	case out := <-r.outcome:
		return out
	case <-r.seat.life.over: // after all output of the process has been read
		return r.last(lost(run, "the plugin's process ended"))
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

// last returns the outcome that the process reported before it ended, or otherwise.
func (r *registered) last(otherwise *protocol.TaskOutcome) *protocol.TaskOutcome {
	select {
	case out := <-r.outcome:
		return out
	default:
		return otherwise
	}
}

// complete takes the outcome from the process. It answers when the outcome is durable.
func (r *registered) complete(ctx context.Context, g *grant, out *protocol.TaskOutcome) (*taskAnswer, error) {
	switch out.Kind {
	case protocol.TaskDone, protocol.TaskError, protocol.TaskExited, protocol.TaskSignal, protocol.TaskStopped:
	default:
		return nil, &paramsError{errors.New("/outcome/kind: must be completed, failed, exited, signaled or stopped")}
	}
	select {
	case r.outcome <- out:
	default: // an earlier outcome counts
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.seat.of.factory.config.Deadlines.State) // not the request's context, because the grant ends with the task
	defer cancel()
	w, err := g.host.Tasks.AwaitTasks(ctx, &protocol.TaskWaitParams{TaskIDs: []protocol.TaskID{r.id}})
	if err != nil {
		return nil, err
	}
	return &taskAnswer{w.Settled[0]}, nil
}
