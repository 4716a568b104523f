package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/tool"
	"lashd/internal/deadline"
	"lashd/rpc/protocol"
)

func TestCallsHaveADeadline(t *testing.T) {
	// hangs returns work on a file system that does not answer until the test ends. The work may have started to change files.
	hangs := func(t *testing.T, begun bool) work {
		answer := make(chan struct{})
		t.Cleanup(func() { close(answer) })
		return func(_ context.Context, gate *deadline.Gate) (protocol.ToolOutput, error) {
			if begun && !gate.Pass() {
				t.Error("the gate is shut")
			}
			<-answer
			return protocol.Succeed("late"), nil
		}
	}
	t.Run("outside/10 a read that hangs fails after two minutes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := inTime(t.Context(), false, hangs(t, false))
			if out := failed(err); out.Failure == nil || out.Failure.Code != "timeout" || time.Since(began) != 2*time.Minute {
				t.Errorf("%v, %+v after %v", err, out, time.Since(began))
			}
		})
	})
	t.Run("outside/10 a hanging call ends with its turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if _, err := inTime(ctx, true, hangs(t, false)); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want that it was cancelled", err)
			}
		})
	})
	t.Run("outside/10 an edit that hangs while it changes files has an unknown outcome after two minutes, cancelled or not", func(t *testing.T) {
		for _, cancelled := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if cancelled {
					time.AfterFunc(time.Second, cancel)
				}
				_, err := inTime(ctx, true, hangs(t, true))
				if out := failed(err); out.Status != protocol.OutputUnknown || time.Since(began) != 2*time.Minute {
					t.Errorf("cancelled %v: %v, %+v after %v", cancelled, err, out, time.Since(began))
				}
			})
		}
	})
	t.Run("outside/10 a panic in a call reaches the caller, which recovers from it", func(t *testing.T) {
		defer func() {
			if p := recover(); p != "oh" {
				t.Errorf("the panic is %v", p)
			}
		}()
		inTime(t.Context(), false, func(context.Context, *deadline.Gate) (protocol.ToolOutput, error) { panic("oh") })
	})
}

// slowHost blocks until the test releases it.
type slowHost struct {
	host
	answer chan struct{}
}

func (h *slowHost) Touch(context.Context, string) error {
	<-h.answer
	return nil
}

func TestEditsHaveADeadline(t *testing.T) {
	for name, args := range map[string]any{
		"write": writeArgs{Path: "f", Content: "new"}, "edit": editArgs{Path: "f", Old: "old", New: "new"},
		"patch": patchArgs{Patch: "*** Begin Patch\n*** Update File: f\n-old\n+new\n*** End Patch"},
	} {
		t.Run("outside/10 a call that hangs before it changes a file fails after two minutes and never changes it: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, slow := newBench(t), &slowHost{answer: make(chan struct{})}
				b.put(t, "f", "old\n")
				data, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for range 2 { // the second call waits for the first
					res, err := b.files.Execute(t.Context(), tool.Invocation{Name: name, Args: data, Host: slow})
					if err != nil || res.Output.Failure == nil || res.Output.Failure.Code != "timeout" {
						t.Errorf("it came to %+v, %v", res.Output, err)
					}
				}
				if took := time.Since(began); took != 4*time.Minute {
					t.Errorf("both took %v", took)
				}
				close(slow.answer)
				synctest.Wait()
				if got := b.get(t, "f"); got != "old\n" {
					t.Errorf("it holds %q", got)
				}
				if left, err := filepath.Glob(filepath.Join(b.dir, ".lashd-*")); err != nil || len(left) > 0 {
					t.Errorf("there are %v, %v", left, err)
				}
				if err := os.WriteFile(filepath.Join(b.dir, "f"), []byte("old\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				b.ok(t, name, args)
			})
		})
	}
}
