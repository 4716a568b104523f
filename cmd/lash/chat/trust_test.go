package chat

import (
	"testing"

	"lashd/rpc/protocol"
)

func TestUntrusted(t *testing.T) {
	for name, c := range map[string]struct {
		info protocol.PluginInfo
		want bool
	}{
		"a layout that nobody approved":    {protocol.PluginInfo{Name: "project", Scope: protocol.ScopeWorkspace, Status: protocol.PluginUntrusted}, true},
		"an approved layout":               {protocol.PluginInfo{Name: "project", Scope: protocol.ScopeWorkspace, Status: protocol.PluginLoaded}, false},
		"another plugin of the workspace":  {protocol.PluginInfo{Name: "other", Scope: protocol.ScopeWorkspace, Status: protocol.PluginUntrusted}, false},
		"a plugin of the user of the name": {protocol.PluginInfo{Name: "project", Scope: protocol.ScopeUser, Status: protocol.PluginUntrusted}, false},
	} {
		t.Run("part13/7 "+name, func(t *testing.T) {
			if got := untrusted([]protocol.PluginInfo{c.info}); got != c.want {
				t.Errorf("the note is shown: %t", got)
			}
		})
	}
}
