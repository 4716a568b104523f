//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
	"lashd/test/left"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		serveGuest(role)
		return
	}
	if nonce := os.Getenv(daemonVariable); nonce != "" {
		playDaemon(nonce)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // they wait, mostly
		panic(err)
	}
	goleak.VerifyTestMain(left.Childless{M: m})
}

// nonce marks all processes of the tests.
var (
	nonce   = fmt.Sprintf("process-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	configs atomic.Int64 // each has a nonce of its own, which begins so
)

// everything is one of each contribution.
func everything() process.Contributions {
	var hooks []process.Hook
	for _, name := range []process.HookName{
		process.Prompt, process.BeforeTurn, process.BeforeToolCall, process.AfterToolCall, process.Checkpoint, process.AfterTurn,
		process.AssistantStream, process.AssistantResponse, process.StreamFinished, process.ProjectToolResult,
		process.ConfigChanged, process.Event, process.TransformContext, process.Compact, process.Catalog, process.ProjectProse,
	} {
		hooks = append(hooks, process.Hook{Name: name})
	}
	return process.Contributions{
		Hooks: hooks, Executor: &process.CodeExecutor{}, State: "1", Changing: true,
		Tools: []tool.Tool{{Manifest: protocol.ToolManifest{Name: "note", Description: "Note something.", Kind: protocol.ToolKindOther}}},
		Operations: []protocol.OperationInfo{
			{Name: "notes.list", Kind: protocol.OperationQuery}, {Name: "notes.add", Kind: protocol.OperationCommand},
			{Name: "notes.work", Kind: protocol.OperationTask},
		},
		Prompts:  []plugin.Prompt{{Slot: plugin.SlotIntro, Content: "You take notes."}},
		Triggers: []plugin.TriggerEvent{{ResourceType: "file", Alias: "notes", Event: "changed"}},
	}
}

var everyCapability = []process.Capability{
	process.UsesState, process.UsesLifecycle, process.UsesGraph, process.UsesCompletions, process.UsesTools, process.UsesArtifacts,
	process.UsesDecisions, process.UsesTasks, process.UsesMonitors,
}

// only is a plugin with one hook, and the tool.
func only(hooks ...process.Hook) process.Contributions {
	return process.Contributions{Hooks: hooks, Tools: everything().Tools}
}

// patience is how long anything may take that does not misbehave.
const patience = 2 * time.Minute

// config is the test binary as a plugin.
func config(t testing.TB, role string, c process.Contributions) process.Config {
	return process.Config{
		ID: "notes", Argv: []string{os.Args[0]}, Dir: t.TempDir(), DataDir: t.TempDir(), Environ: os.Environ(),
		Set: map[string]string{roleVariable: role, "GORACE": "atexit_sleep_ms=0"}, Contributes: c, Nonce: fmt.Sprint(nonce, "/", configs.Add(1)), Log: slog.New(slog.DiscardHandler),
		Options: json.RawMessage(`{"a":1}`), Uses: everyCapability,
		Deadlines: process.Deadlines{
			Start: patience, Hook: patience, Stop: 500 * time.Millisecond, Terminate: 300 * time.Millisecond, Stall: 2 * time.Second,
		},
	}
}

// begin makes a factory, which leaves nothing behind when the test ends.
func begin(t testing.TB, c process.Config) *process.Factory {
	t.Helper()
	f, err := process.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		began := time.Now()
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > bound {
			t.Errorf("the shutdown took %v", took)
		}
		if left := marked(c.Nonce, c.ID); len(left) > 0 {
			t.Errorf("processes of %s are left: %q", c.ID, left)
		}
	})
	return f
}

// marked are the processes that a daemon with a nonce has started of a plugin, and whatever they have started.
func marked(nonce, id string) []left.Process {
	return left.Marked("LASHD_CHILD="+nonce, "/plugin/"+id+"/")
}
