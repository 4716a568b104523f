//go:build unix

package plugins_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
	"lashd/test/left"
	"lashd/test/skip"
)

// roleVariable makes a plugin of the test binary.
const roleVariable = "PLUGINS_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		serveNotes()
		return
	}
	goleak.VerifyTestMain(m)
}

// nonce marks all processes of the tests.
var nonce = fmt.Sprintf("plugins-test-%d-%d", os.Getpid(), time.Now().UnixNano())

// language is an SDK, and how the plugin in testdata is run that is written with it.
type language struct {
	name string
	argv func(testing.TB) []string
}

var languages = []language{
	{"go", func(testing.TB) []string { return []string{os.Args[0]} }},
	{"python", func(t testing.TB) []string { return []string{python(t), absolute(t, "testdata/notes.py")} }},
	{"typescript", func(t testing.TB) []string { return []string{node(t), absolute(t, "testdata/notes.mts")} }},
}

// absolute is the path of a file, which go test now knows that the tests depend on.
func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if _, missing := os.Stat(path); err != nil || missing != nil {
		t.Fatal(path, err, missing)
	}
	return path
}

func python(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	skip.Unless(t, "PYTHON", err == nil, "there is no python3")
	return path
}

// node is one that runs TypeScript: that of the system, or the one that scripts/test installs.
func node(t testing.TB) string {
	t.Helper()
	installed, _ := filepath.Glob("../.cache/node/node_modules/node-*/bin/node")
	for _, path := range append(installed, "node") {
		if path != "node" {
			path = absolute(t, path)
		}
		if exec.Command(path, "--eval", "process.exit(process.features.typescript ? 0 : 1)").Run() == nil {
			return path
		}
	}
	skip.Unless(t, "NODE", false, "there is no node that runs TypeScript, which 22.18 and later do; scripts/test installs one")
	return ""
}

// each runs a test with the plugin of each language.
func each(t *testing.T, name string, test func(*testing.T, process.Config)) {
	for _, l := range languages {
		t.Run(name+", in "+l.name, func(t *testing.T) {
			test(t, config(t, l.argv(t), everything()))
		})
	}
}

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
		Hooks: hooks, Tasks: []string{"build"}, Executor: &process.CodeExecutor{}, State: "1", Changing: true, Preparing: true,
		Tools: []tool.Tool{{Manifest: protocol.ToolManifest{Name: "note", Description: "Note something."}}},
		Operations: []protocol.OperationInfo{
			{Name: "notes.list", Kind: protocol.OperationQuery}, {Name: "notes.add", Kind: protocol.OperationCommand},
			{Name: "notes.work", Kind: protocol.OperationTask},
		},
	}
}

func config(t testing.TB, argv []string, c process.Contributions) process.Config {
	return process.Config{
		ID: "notes", Argv: argv, Dir: t.TempDir(), DataDir: t.TempDir(), Environ: os.Environ(), Contributes: c, Nonce: nonce,
		Set: map[string]string{"NOTES_SDK": absolute(t, "sdk/python"), "PYTHONDONTWRITEBYTECODE": "1", "GORACE": "atexit_sleep_ms=0", roleVariable: "notes"},
		Log: slog.New(slog.DiscardHandler), Deadlines: process.Deadlines{Start: patience, State: patience, Hook: patience, Stop: patience},
	}
}

// patience is how long anything may take before a test gives up on it.
const patience = 2 * time.Minute

// begin makes a factory. When the test ends it is stopped, and ends by itself, and leaves nothing behind.
func begin(t testing.TB, c process.Config) *process.Factory {
	t.Helper()
	c.Nonce = fmt.Sprintf("%s-%d", nonce, begun.Add(1))
	f, err := process.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		began := time.Now()
		if err := f.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > patience*3/4 { // then it would be killed
			t.Errorf("the shutdown took %v", took)
		}
		if left := processes(c.Nonce); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
	})
	return f
}

// begun counts the factories, so that each has a nonce of its own.
var begun atomic.Int64

// processes are those with a nonce, and whatever they have started.
func processes(nonce string) []left.Process { return left.Marked("LASHD_CHILD=" + nonce + "/") }

// unstopped hides Shutdown: the kit calls it in the middle, and afterwards uses the factory for other sessions.
type unstopped struct{ plugin.Factory }

func (u unstopped) Build(c plugin.BuildContext) (plugin.Plugin, error) { return u.Factory.Build(c) }
