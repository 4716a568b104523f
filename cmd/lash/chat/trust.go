package chat

import (
	tea "charm.land/bubbletea/v2"

	"lashd/rpc/protocol"
)

// projectLayout is the name of the plugin with the files that a workspace has for other agents.
const projectLayout = "project"

// untrustedNote tells the user how to approve such files.
const untrustedNote = "This workspace has skills, commands, hooks, servers or permissions for agents, which do nothing until you approve them. To review them: lash plugin trust " + projectLayout

// readTrust returns a command that shows untrustedNote if it applies. Without an answer it shows nothing.
func readTrust(u *ui) tea.Cmd {
	cwd := u.talk.session.Cwd
	return func() tea.Msg {
		var r protocol.PluginListResult
		if err := u.session.Call(u.ctx, "plugin/list", protocol.PluginListParams{Cwd: cwd}, &r); err != nil || !untrusted(r.Data) {
			return nil
		}
		return saidMsg(untrustedNote)
	}
}

// untrusted reports whether the workspace has files for other agents that need approval.
func untrusted(all []protocol.PluginInfo) bool {
	for i := range all {
		if all[i].Name == projectLayout && all[i].Scope == protocol.ScopeWorkspace && all[i].Status == protocol.PluginUntrusted {
			return true
		}
	}
	return false
}
