package task_test

import (
	"errors"
	"testing"

	"lashd/engine/task"
	"lashd/rpc/protocol"
)

func TestCheckCommands(t *testing.T) {
	for _, c := range []struct {
		what  string
		shell protocol.TaskShell
		field string
	}{
		{"a valid command", protocol.TaskShell{Script: "true", Workdir: "/", Env: map[string]string{"A": "b=c"}}, ""},
		{"a blank command", protocol.TaskShell{Script: " "}, "command/script"},
		{"a relative directory", protocol.TaskShell{Script: "true", Workdir: "here"}, "command/workdir"},
		{"a directory with a NUL", protocol.TaskShell{Script: "true", Workdir: "/\x00"}, "command/workdir"},
		{"a variable without a name", protocol.TaskShell{Script: "true", Env: map[string]string{"": "x"}}, "command/env"},
		{"a variable name with an equals sign", protocol.TaskShell{Script: "true", Env: map[string]string{"A=B": "x"}}, "command/env"},
		{"a variable with a NUL", protocol.TaskShell{Script: "true", Env: map[string]string{"A": "\x00"}}, "command/env"},
	} {
		t.Run("runtime/B02 "+c.what, func(t *testing.T) {
			for _, detach := range []bool{false, true} {
				spec := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &c.shell}
				if c.shell.Detach = detach; detach {
					spec.Recovery = protocol.RecoverExternal
				}
				field := ""
				if wrong, ok := errors.AsType[*task.SpecError](task.Check(&spec)); ok {
					field = wrong.Field
				}
				if field != c.field {
					t.Errorf("detached %t, it points to %q, want %q", detach, field, c.field)
				}
			}
		})
	}
}
