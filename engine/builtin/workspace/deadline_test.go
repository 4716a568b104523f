package workspace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lashd/rpc/protocol"
)

func TestReadsHaveADeadline(t *testing.T) {
	// hangs is a read of a file system that does not answer until the test is over.
	hangs := func(t *testing.T) func(context.Context) (protocol.ToolOutput, error) {
		answer := make(chan struct{})
		t.Cleanup(func() { close(answer) })
		return func(context.Context) (protocol.ToolOutput, error) {
			<-answer
			return protocol.Succeed("late"), nil
		}
	}
	t.Run("outside/10 a read that hangs fails after two minutes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := inTime(t.Context(), hangs(t))
			if out := failed(err); out.Failure == nil || out.Failure.Code != "timeout" || time.Since(began) != 2*time.Minute {
				t.Errorf("%v, %+v after %v", err, out, time.Since(began))
			}
		})
	})
	t.Run("outside/10 a read that hangs ends with its turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if _, err := inTime(ctx, hangs(t)); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want that it was cancelled", err)
			}
		})
	})
	t.Run("outside/10 a read that panics does so where its caller contains it", func(t *testing.T) {
		defer func() {
			if p := recover(); p != "oh" {
				t.Errorf("the panic is %v", p)
			}
		}()
		inTime(t.Context(), func(context.Context) (protocol.ToolOutput, error) { panic("oh") })
	})
	t.Run("outside/10 the tools that only read have it", func(t *testing.T) {
		for _, op := range operations() {
			want := op.tool.Manifest.Kind == protocol.ToolKindRead || op.tool.Manifest.Kind == protocol.ToolKindSearch
			if op.bounded != want {
				t.Errorf("%s, of the kind %s, has a deadline: %t", op.tool.Manifest.Name, op.tool.Manifest.Kind, op.bounded)
			}
		}
	})
}
