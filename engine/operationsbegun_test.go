package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// runner offers a command and a task that count their runs and end when the test releases them.
type runner struct {
	ran   atomic.Int32
	began chan struct{}
	end   chan error
}

func newRunner() *runner { return &runner{began: make(chan struct{}, 10), end: make(chan error)} }

func (r *runner) run(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
	r.ran.Add(1)
	r.began <- struct{}{}
	return &plugin.OperationResult{}, <-r.end
}

func (r *runner) factory() plugin.Factory {
	return operator(func(g plugin.OperationGroup) {
		g.Command(named("deploy", protocol.SessionOptional), r.run)
		g.Task(named("build", protocol.SessionOptional), r.run)
	})
}

func TestOperationsAfterCrash(t *testing.T) {
	type op struct {
		name string
		call func(*daemon, context.Context, *protocol.OperationParams) (*protocol.OperationReceipt, error)
	}
	command := op{"deploy", func(d *daemon, ctx context.Context, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
		return d.Operations.Command(ctx, p)
	}}
	task := op{"build", func(d *daemon, ctx context.Context, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
		return d.Operations.Task(ctx, p)
	}}
	for _, o := range []op{command, task} {
		for _, alone := range []bool{false, true} {
			t.Run("issue/2 an operation with a key that began before SIGKILL does not run again: "+o.name, func(t *testing.T) {
				r := newRunner()
				d := start(t, with(r.factory()))
				p := d.operation("", o.name)
				if !alone {
					p.SessionID = d.session(t)
				}
				p.IdempotencyKey = "once"
				first := later(func() (*protocol.OperationReceipt, error) { return o.call(d, t.Context(), p) })
				<-r.began
				s := d.setup
				s.dir = d.asKilled(t)
				r.end <- nil
				if err := <-first; err != nil {
					t.Error(err)
				}
				if again, err := o.call(d, t.Context(), p); err != nil || !again.Duplicate {
					t.Errorf("without a crash: %+v, %v", again, err)
				}
				close(r.end)
				d = start(t, s)
				for range 2 {
					_, err := o.call(d, t.Context(), p)
					if e, ok := errors.AsType[*plugin.OperationError](err); !ok || e.Code != plugin.OperationAbandoned || !strings.Contains(e.Message, "its effect is unknown") {
						t.Errorf("after the crash: %v", err)
					}
				}
				if n := r.ran.Load(); n != 1 {
					t.Errorf("it ran %d times", n)
				}
			})
		}
	}
	t.Run("issue/2 a repetition waits for an operation in progress and runs a failed one again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRunner()
			d := start(t, with(r.factory()))
			p := d.operation(d.session(t), "deploy")
			p.IdempotencyKey = "once"
			call := func() (*protocol.OperationReceipt, error) { return d.Operations.Command(t.Context(), p) }
			first := later(call)
			<-r.began
			second := later(call)
			synctest.Wait()
			r.end <- errors.New("out of paper")
			if err := <-first; err == nil || !strings.Contains(err.Error(), "out of paper") {
				t.Errorf("the first came to %v", err)
			}
			close(r.end)
			if err := <-second; err != nil || r.ran.Load() != 2 {
				t.Errorf("the second came to %v, after %d runs", err, r.ran.Load())
			}
		})
	})
}
