//go:build unix

package pluginloader_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/rpc/protocol"
)

// serveMCP is the guest as an MCP server, whose tools say which process it is, end it, and take their time. It may need a file to start.
func serveMCP() {
	if file, ok := os.LookupEnv("ONLY_WITH"); ok {
		if _, err := os.Stat(file); err != nil {
			os.Exit(1)
		}
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "guest", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "die"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		os.Exit(1)
		return nil, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "sleep"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, context.Cause(ctx)
	})
	sdk.AddTool(s, &sdk.Tool{Name: "pid"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strconv.Itoa(os.Getpid())}}}, nil, nil
	})
	_ = s.Run(context.Background(), &sdk.StdioTransport{}) // it ends with its stdin
}

// installed copies a program to its place.
func installed(t *testing.T, of, to string) {
	t.Helper()
	text, err := os.ReadFile(of)
	if err == nil {
		err = os.WriteFile(to+".new", text, 0o755)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Programs beyond a plugin of a workspace are what a person has approved, at every start.
func TestApprovedPrograms(t *testing.T) {
	self := must(os.Executable()).of(t)
	says := func(guest string) string {
		return `"env":{"` + guestVariable + `":"` + guest + `","GORACE":"atexit_sleep_ms=0"}`
	}
	for _, c := range []struct {
		what, more, tool string // of the plugin; the tool says the pid of the process that is to end first
		of               string // the program
		refusal          string // the error of a call
	}{
		{"a process", `"process":{"command":["PROGRAM"],` + says("1") + `},"tools":[{"name":"pid","description":"p"}]`, "pid", self, "plugin_modified"},
		{"an MCP server", `"mcpServers":{"s":{"command":"PROGRAM",` + says("mcp") + `}}`, "mcp__s__pid", self, "plugin_modified"},
		{"a tool that is a command", `"tools":[{"name":"say","description":"p","command":["PROGRAM"],` + says("say") + `}]`, "say", self, "plugin_modified"},
		{"a hook that is a command", `"tools":[{"name":"say","description":"p","command":["true"]}]`, "say", "/bin/true", "hook_failed"},
	} {
		t.Run("issue/4-7 reliability/T6 "+c.what+" starts only with the program that was approved", func(t *testing.T) {
			bin, cwd := t.TempDir(), t.TempDir()
			program, canary := filepath.Join(bin, "interpreter"), filepath.Join(bin, "canary")
			installed(t, c.of, program)
			put(t, cwd, "plugin.json", strings.ReplaceAll(`{"name":"guest","lashd":{`+c.more+`}}`, "PROGRAM", program))
			if strings.Contains(c.what, "hook") {
				put(t, cwd, "hooks/hooks.json", `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"`+program+`","args":[]}]}]}}`)
			}
			w := newWorld(t).start()
			id := w.session(cwd)
			if now := w.approve(cwd); now.Status != protocol.PluginLoaded {
				t.Fatalf("approved: %+v", now)
			}
			kill(w.call(id, c.tool, `{}`))

			if err := os.WriteFile(program+".evil", fmt.Appendf(nil, "#!/bin/sh\ntouch %s\n", canary), 0o755); err != nil {
				t.Fatal(err)
			}
			installed(t, program+".evil", program)
			for range 6 { // more often than a program may crash
				if got := w.call(id, c.tool, `{}`); !w.refused(got, c.refusal) {
					t.Errorf("with another program at the path the call returns %q", got)
				}
			}
			if c.refusal == "plugin_modified" {
				if text := w.failure(id, c.tool); !strings.Contains(text, program+": the program changed since it was approved") || !strings.Contains(text, "lash plugin trust") {
					t.Errorf("it says %q", text)
				}
			}
			if _, err := os.Stat(canary); err == nil {
				t.Error("the other program ran")
			}
			must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: cwd})).of(t)
			if now := w.info(cwd, "guest"); now.Status != protocol.PluginModified {
				t.Errorf("it is %+v", now)
			}

			installed(t, c.of, program)
			w.until("it runs again", func() bool {
				got := w.call(id, c.tool, `{}`)
				return !w.refused(got, c.refusal) && !strings.HasPrefix(got, "plugin_")
			})
		})
	}
}

// kill ends the process that a text names, if it names one.
func kill(text string) {
	if pid, err := strconv.Atoi(text); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
	}
}

// refused reports whether a call failed with this refusal. A call made before the process's end is noticed fails differently.
func (w *world) refused(got, refusal string) bool {
	return got == refusal || got == "plugin_crashed" && refusal == "plugin_modified"
}

// failure is what a call that fails says.
func (w *world) failure(id protocol.SessionID, name string) string {
	w.t.Helper()
	r := must(w.Tools.Call(w.t.Context(), &protocol.ToolCallParams{SessionID: id, Name: name, Args: json.RawMessage(`{}`)})).of(w.t)
	if r.Output.Failure == nil {
		return ""
	}
	return r.Output.Failure.Message
}
