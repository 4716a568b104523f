package workspace_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/workspace"
	"lashd/rpc/protocol"
)

// TestKernelFiles reads files of the kernel that look like regular files. To read /proc/kmsg waits for the next message of the kernel; who is not root
// cannot open it, which is refused too.
func TestKernelFiles(t *testing.T) {
	d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), new(workspace.Factory))
	id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: "/"}))(t).SessionID
	for _, c := range []struct{ tool, path string }{
		{"read", "/proc/kmsg"}, {"grep", "/proc/kmsg"}, {"edit", "/proc/kmsg"}, {"read", "/proc/self/status"}, {"read", "/dev/zero"},
	} {
		t.Run("outside/10 "+c.tool+" "+c.path, func(t *testing.T) {
			args := map[string]any{"path": c.path}
			switch c.tool {
			case "grep":
				args["pattern"] = "x"
			case "edit":
				args["old"], args["new"] = "x", "y"
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			text := builtintest.Must(json.Marshal(args))(t)
			out := builtintest.Must(d.Tools.Call(ctx, &protocol.ToolCallParams{SessionID: id, Name: c.tool, Args: text}))(t).Output
			if out.Failure == nil || out.Failure.Class != protocol.FailPermission {
				t.Errorf("the call came to %+v", out)
			}
		})
	}
}
