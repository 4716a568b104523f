package plugintest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// note is a plugin that keeps a text. fault selects what it does wrong.
type note struct {
	text     string
	revision uint64
	fault    string
}

type notes struct{ fault string }

func (notes) ID() string { return "notes" }

func (f notes) Build(plugin.BuildContext) (plugin.Plugin, error) {
	if f.fault == "slow" {
		time.Sleep(2 * fastest) // like IO or compiling something
	}
	return &note{fault: f.fault}, nil
}

func (n *note) Register(r *plugin.Registrar) error {
	r.Tools().Add(n)
	r.Operations().Command(protocol.OperationInfo{Name: "set"}, n.set)
	r.Turn().Before(func(ctx context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
		switch n.fault {
		case "deaf":
			select {}
		case "clumsy":
			_ = tc.View.Messages()
		}
		return nil, ctx.Err()
	})
	r.ToolCalls().Before(func(_ context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
		if n.fault == "clumsyTool" {
			_ = tc.Args[0]
		}
		return nil, nil
	})
	return nil
}

func (n *note) set(_ context.Context, call *plugin.OperationCall) (*plugin.OperationResult, error) {
	n.text = string(call.Args)
	if n.fault != "silent" {
		n.revision++
	}
	return &plugin.OperationResult{}, nil
}

func (n *note) Revision() uint64 { return n.revision }

func (n *note) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return json.Marshal(n.text)
}

func (n *note) Restore(_ context.Context, meta plugin.Meta, _ *plugin.ArtifactReader) error {
	if n.fault != "adds" && (n.fault != "keeps" || meta.State != nil) {
		n.text = ""
	}
	if meta.State == nil || n.fault == "forgets" {
		return nil
	}
	var text string
	err := json.Unmarshal(meta.State, &text)
	n.text += text
	return err
}

func (n *note) Tools() []tool.Tool {
	m := protocol.ToolManifest{Name: "note"}
	if n.fault == "schema" {
		m.Input = json.RawMessage(`{"$ref":"#"}`)
	}
	return []tool.Tool{{Manifest: m}}
}

func (*note) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

func config() Config {
	return Config{Seams: 200 * time.Millisecond, Change: func(s *plugin.Session) {
		_, _ = s.Command(context.Background(), "set", &plugin.OperationCall{}, plugin.Target{Explicit: new(protocol.SessionID("x"))})
	}}
}

func TestRun(t *testing.T) { Run(t, notes{}, config()) }

const broken = "PLUGINTEST_BROKEN"

// TestBroken runs the checks on a plugin with a fault, in a process that TestRunFinds starts.
func TestBroken(t *testing.T) {
	fault := os.Getenv(broken)
	if fault == "" {
		return // only processes of TestRunFinds set it
	}
	Run(t, notes{fault}, config())
}

func TestRunFinds(t *testing.T) {
	for fault, check := range map[string]string{
		"slow": "every_session_registers", "schema": "tools_and_operations", "silent": "state_survives", "forgets": "state_survives",
		"adds": "restoring_twice", "keeps": "restoring_twice", "deaf": "hooks_return", "clumsy": "hooks_survive", "clumsyTool": "hooks_survive",
	} {
		t.Run(fault, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$", "-test.timeout=30s")
			cmd.Env = append(os.Environ(), broken+"="+fault)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestBroken/contract:_"+check) {
				t.Errorf("%v, no check of %s fails:\n%s", err, check, out)
			}
		})
	}
}
