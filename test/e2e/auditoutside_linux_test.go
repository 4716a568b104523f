package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

// TestAuditOfPluginsOutside opens a session with a sandbox whose plugins have programs outside.
func TestAuditOfPluginsOutside(t *testing.T) {
	w := confined(t)
	config := filepath.Join(w.dir, "config.toml")
	w.write(config, readText(t, config)+"\n[mcp.free]\nsandbox = \"fullAccess\"\n")
	server := `{"command":"python3","args":["${PLUGIN_ROOT}/server.py","."]}`
	w.plugin("servers", map[string]string{
		"plugin.json": fmt.Sprintf(`{"name":"servers","lashd":{"mcpServers":{"free":%s,"held":%s}}}`, server, server), "server.py": runningServer,
	})
	const tools = `"tools":[{"name":%q,"description":"d","command":["true"]}]`
	w.plugin("open", map[string]string{"plugin.json": `{"name":"open","lashd":{` + fmt.Sprintf(tools, "a") + `}}`})
	w.plugin("boxed", map[string]string{"plugin.json": `{"name":"boxed","lashd":{` + fmt.Sprintf(tools, "b") + `,"sandbox":{}}}`})
	w.serve()
	p := w.dial("")
	for _, name := range []string{"servers", "open", "boxed"} {
		p.loads(name, nil)
	}
	id := p.session(w.home)
	ask[protocol.MonitorStatusResult](p, "monitor/status", protocol.SessionParams{SessionID: id}) // it opens the plugins
	t.Run("issue/20-5 programs of plugins that run outside in a session with a sandbox are in its audit", func(t *testing.T) {
		var got []string
		for _, a := range ask[protocol.AuditListResult](p, "audit/list", protocol.AuditListParams{SessionID: id, Kind: protocol.AuditOutside}).Data {
			got = append(got, fmt.Sprintf("%s %.5s by %s: %s", a.Tool, a.Subject, a.Why.By, a.Why.Text))
		}
		slices.Sort(got)
		want := []string{
			"mcp free: by trust: A person trusts the plugin servers with this MCP server. Its sandbox is none: its settings have sandbox = \"fullAccess\".",
			"plugin open: by trust: A person trusts the plugin open. Its sandbox is none: the plugin does not request one.",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
