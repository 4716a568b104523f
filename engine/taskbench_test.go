package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"lashd/engine/feed"
	"lashd/rpc/protocol"
)

// external is a task that costs only its row.
func external(label string) protocol.TaskSpec {
	return protocol.TaskSpec{Kind: protocol.TaskOther, Label: label, Recovery: protocol.RecoverExternal}
}

// BenchmarkTasks lists 1,000 tasks and reports how many times longer that takes than listing ten.
func BenchmarkTasks(b *testing.B) {
	d := start(b, setup{model: instant("ok")})
	id := d.session(b)
	for i := range 1000 {
		d.task(b, id, "", external(fmt.Sprint("task ", i)))
	}
	read := func(limit int) time.Duration {
		at := time.Now()
		r := must[*protocol.TaskListResult](b)(d.Tasks.List(b.Context(), &protocol.TaskListParams{SessionID: id, Limit: limit}))
		if len(r.Data) != limit {
			b.Fatalf("%d tasks", len(r.Data))
		}
		return time.Since(at)
	}
	all, ten := time.Duration(0), time.Duration(0)
	for b.Loop() {
		all += read(1000)
		b.StopTimer()
		ten += read(10)
		b.StartTimer()
	}
	b.ReportMetric(float64(all)/float64(ten), "x-ten")
}

// BenchmarkWake measures the time from the end of a task to the start of the turn that the wake causes. It also reports how many
// times longer that is than the time from a client's turn/start to the start of its turn.
func BenchmarkWake(b *testing.B) {
	d := start(b, setup{model: instant("ok")})
	id := d.session(b)
	_, sub, err := d.Sessions.Attach(b.Context(), &protocol.SessionAttachParams{SessionID: id})
	if err != nil {
		b.Fatal(err)
	}
	defer sub.Close()
	begun := startsOf(b, sub)
	spec := external("one")
	spec.Ended = &protocol.TaskWake{}
	woken, asked := time.Duration(0), time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		task := d.task(b, id, "", spec)
		at := time.Now()
		d.begin(b, id, "go")
		<-begun
		asked += time.Since(at)
		must[*protocol.SessionWaitResult](b)(d.Sessions.Wait(b.Context(), &protocol.SessionWaitParams{SessionID: id}))
		at = time.Now()
		b.StartTimer()
		must[*protocol.TaskResult](b)(d.Tasks.Complete(b.Context(), "", &protocol.TaskCompleteParams{
			TaskParams: protocol.TaskParams{SessionID: id, TaskID: task.ID}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone},
		}))
		<-begun
		woken += time.Since(at)
		b.StopTimer()
		must[*protocol.SessionWaitResult](b)(d.Sessions.Wait(b.Context(), &protocol.SessionWaitParams{SessionID: id}))
		b.StartTimer()
	}
	b.ReportMetric(float64(woken)/float64(asked), "x-turn-start")
}

// startsOf sends a value for every turn that starts, until the benchmark ends.
func startsOf(b *testing.B, sub *feed.Subscription) <-chan struct{} {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	b.Cleanup(func() {
		cancel()
		reading.Wait()
	})
	begun := make(chan struct{}, 8)
	reading.Go(func() {
		for {
			events, err := sub.Next(ctx)
			if err != nil {
				return
			}
			for _, e := range events {
				if bytes.Contains(e, []byte(`"type":"turn/started"`)) {
					begun <- struct{}{}
				}
			}
		}
	})
	return begun
}
