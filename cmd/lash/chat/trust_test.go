package chat_test

import (
	"testing"

	"lashd/cmd/lash/chat"
	"lashd/rpc/protocol"
)

func TestTrustNote(t *testing.T) {
	info := func(name string, scope protocol.PluginScope, status protocol.PluginStatus) protocol.PluginInfo {
		return protocol.PluginInfo{Name: name, Scope: scope, Status: status}
	}
	layout := info("project", protocol.ScopeWorkspace, protocol.PluginUntrusted)
	const inert = "This workspace has skills, commands, agents, hooks, MCP servers, permissions or plugins that do nothing until you approve them."
	const several = inert + " To list them: lash plugin. To review one: lash plugin trust NAME"
	for name, c := range map[string]struct {
		all  []protocol.PluginInfo
		want string
	}{
		"a layout that is not approved":         {[]protocol.PluginInfo{layout}, inert + " To review them: lash plugin trust project"},
		"an approved layout":                    {[]protocol.PluginInfo{info("project", protocol.ScopeWorkspace, protocol.PluginLoaded)}, ""},
		"another plugin of the workspace":       {[]protocol.PluginInfo{info("guard", protocol.ScopeWorkspace, protocol.PluginUntrusted)}, inert + " To review them: lash plugin trust guard"},
		"both":                                  {[]protocol.PluginInfo{layout, info("guard", protocol.ScopeWorkspace, protocol.PluginUntrusted)}, several},
		"a name that a shell would read":        {[]protocol.PluginInfo{info("x;rm -rf y", protocol.ScopeWorkspace, protocol.PluginUntrusted)}, several},
		"a name that is an option":              {[]protocol.PluginInfo{info("--digest", protocol.ScopeWorkspace, protocol.PluginUntrusted)}, several},
		"a plugin of the user that is disabled": {[]protocol.PluginInfo{info("project", protocol.ScopeUser, protocol.PluginDisabled)}, ""},
	} {
		t.Run("part13/7 "+name, func(t *testing.T) {
			if got := chat.TrustNote(c.all); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
