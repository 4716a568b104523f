package chat

import (
	"testing"

	"lashd/rpc/protocol"
)

func TestServerList(t *testing.T) {
	r := &protocol.PluginListResult{Data: []protocol.PluginInfo{
		{Name: "mcp", Scope: protocol.ScopeUser, Status: protocol.PluginLoaded, Servers: []protocol.PluginServer{
			{Name: "clock", State: "ready", Tools: 2}, {Name: "db", State: "idle", Tools: 1},
			{Name: "docs", State: "failed", Login: protocol.LoginNeeded, Error: "401"},
			{Name: "files", State: "quarantined", Error: "start npx: it is not in the path of lashd.\n[mcp.files]\nnetwork = true"},
		}},
		{Name: "project", Scope: protocol.ScopeWorkspace, Status: protocol.PluginUntrusted},
	}}
	want := `MCP servers:
  clock  ready · 2 tools
  db     idle · 1 tool
  docs   needs login
    To log in: lash mcp login docs
  files  quarantined
    start npx: it is not in the path of
    lashd.
    [mcp.files]
    network = true
    It failed too often. To start it
    again: lash plugin reload
  MCP servers of project need your
  approval: lash plugin trust project
  To add or remove servers: lash mcp`
	if got := serverList(r, 40); got != want {
		t.Errorf("part13/6 with 40 columns /mcp shows\n%s\nwant\n%s", got, want)
	}
	if got := serverList(&protocol.PluginListResult{}, 40); got != "No MCP servers. To add one: lash mcp add NAME PROGRAM" {
		t.Errorf("part13/6 without servers /mcp shows %q", got)
	}
}
