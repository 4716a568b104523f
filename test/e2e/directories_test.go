package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// plugins is the user's plugin directory.
func (h *home) plugins() string { return filepath.Join(h.user, ".agents", "plugins") }

// file writes a file atomically and creates its directories.
func (h *home) file(path, text string) {
	h.t.Helper()
	next := filepath.Join(h.user, "next")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	h.write(next, text)
	if err := os.Rename(next, path); err != nil {
		h.t.Fatal(err)
	}
}

// plugin creates a user plugin from its files.
func (h *home) plugin(name string, files map[string]string) {
	h.t.Helper()
	for file, text := range files {
		h.file(filepath.Join(h.plugins(), name, file), text)
	}
}

// plainProgram is the common part of a plugin program that speaks the protocol without the SDK.
// execute answers tool calls.
const plainProgram = `
import json, sys

for line in sys.stdin:
    m = json.loads(line)
    p = m.get("params", {})
    if "id" not in m: continue
    r = {}
    if m["method"] == "initialize":
        name = p["pluginId"]
        r = {k: p[k] for k in ("protocolVersion", "pluginId", "nonce", "contributes")}
    if m["method"] == "tool/execute": r = execute(name, p["args"])
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

// listed is the plugin as plugin/list reports it; the zero value if there is none.
func (p *peer) listed(name string) protocol.PluginInfo {
	p.t.Helper()
	for _, info := range ask[protocol.PluginListResult](p, "plugin/list", protocol.PluginListParams{}).Data {
		if info.Name == name {
			return info
		}
	}
	return protocol.PluginInfo{}
}

// loads waits until the daemon runs the current contents of a plugin's directory and the plugin fits.
func (p *peer) loads(name string, fits func(protocol.PluginInfo) bool) {
	p.t.Helper()
	eventually(p.t, "the plugin "+name+" is loaded", func() error {
		if info := p.listed(name); info.Status != protocol.PluginLoaded || fits != nil && !fits(info) {
			return fmt.Errorf("the plugin is %+v", info)
		}
		return nil
	})
}

// calls has a turn call a tool, and returns its output.
func (p *peer) calls(id protocol.SessionID, tool, args string) protocol.ToolOutput {
	p.t.Helper()
	return called(p.t, p.turn(id, fakemodel.ToolMarker(tool, args)), tool)
}

// called returns the output of a turn's only call.
func called(t *testing.T, r protocol.TurnReport, tool string) protocol.ToolOutput {
	t.Helper()
	if len(r.ToolCalls) != 1 || r.ToolCalls[0].Name != tool {
		t.Fatalf("the turn's calls are %+v, want %s", r.ToolCalls, tool)
	}
	return r.ToolCalls[0].Output
}

// says checks that a tool call succeeds with a text.
func (p *peer) says(id protocol.SessionID, tool, args, want string) {
	p.t.Helper()
	if out := p.calls(id, tool, args); out.Status != protocol.OutputSuccess || !strings.Contains(out.Text, want) {
		p.t.Errorf("%s %s returns %s %q %+v, want %q", tool, args, out.Status, out.Text, out.Failure, want)
	}
}

// body is the newest request to the model; empty if there was none.
func (w *world) body() string {
	all := w.model.Requests()
	if len(all) == 0 {
		return ""
	}
	return string(all[len(all)-1].Body)
}
