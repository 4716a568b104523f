//go:build unix

package shell

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// over is the error of a task that has ended.
type over struct{}

func (over) Error() string { return "the task is over" }

func (over) Kind() protocol.ErrorKind { return protocol.KindTaskEnded }

// brief is a task that ends after a number of signals.
type brief struct {
	plugin.TaskService
	takes int
}

func (b *brief) SignalTask(context.Context, *protocol.TaskSignalParams) (t protocol.Task, err error) {
	if b.takes--; b.takes < 0 {
		err = fmt.Errorf("signal: %w", over{})
	}
	return t, err
}

func (*brief) TaskOutput(context.Context, *protocol.TaskOutputParams) (*protocol.TaskOutputResult, error) {
	return &protocol.TaskOutputResult{Text: "bye\n", Ended: true}, nil
}

func (*brief) AwaitTasks(context.Context, *protocol.TaskWaitParams) (*protocol.TaskWaitResult, error) {
	return &protocol.TaskWaitResult{}, nil
}

func (*brief) ReadTask(context.Context, *protocol.TaskReadParams) (*protocol.TaskReadResult, error) {
	return &protocol.TaskReadResult{}, nil
}

type taskHost struct {
	host
	tasks plugin.TaskService
}

func (h *taskHost) Capabilities() plugin.Capabilities { return plugin.Capabilities{Tasks: h.tasks} }

func TestWrittenAndEnded(t *testing.T) {
	write := func(takes int) protocol.ToolOutput {
		call := tool.Invocation{Host: &taskHost{tasks: &brief{takes: takes}}}
		return (&shell{}).writeStdin(t.Context(), call, writeArgs{Text: "exit\n", Interrupt: true, CloseStdin: true})
	}
	t.Run("runtime/K02 text counts as written even if the command ends before its input is closed", func(t *testing.T) {
		for takes := 1; takes < 4; takes++ {
			if r := write(takes); r.Failure != nil || !strings.HasPrefix(r.Text, "bye\n") {
				t.Errorf("ended after %d: %+v", takes, r)
			}
		}
	})
	t.Run("runtime/K02 a command that has ended accepts no input", func(t *testing.T) {
		if r := write(0); r.Failure == nil || !strings.Contains(r.Text+r.Failure.Message, "the task is over") {
			t.Errorf("it answers %+v", r)
		}
	})
}
