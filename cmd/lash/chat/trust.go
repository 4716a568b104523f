package chat

import (
	"regexp"

	tea "charm.land/bubbletea/v2"

	"lashd/rpc/protocol"
)

// inert says that parts of a workspace wait for an approval.
const inert = "This workspace has skills, commands, agents, hooks, MCP servers, permissions or plugins that do nothing until you approve them."

// plainName matches names that people can paste into a shell. A directory that is no plugin yet may have any name.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// TrustNote returns a line that says that parts of a workspace do nothing until a person approves them, and how; empty if there are none. The
// chat and lash run show it once.
func TrustNote(all []protocol.PluginInfo) string {
	var names []string
	for i := range all {
		if all[i].Scope == protocol.ScopeWorkspace && all[i].Status == protocol.PluginUntrusted {
			names = append(names, all[i].Name)
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1 && plainName.MatchString(names[0]):
		return inert + " To review them: lash plugin trust " + names[0]
	}
	return inert + " To list them: lash plugin. To review one: lash plugin trust NAME"
}

// readTrust returns a command that shows TrustNote. Without an answer it shows nothing.
func readTrust(u *ui) tea.Cmd {
	cwd := u.talk.session.Cwd
	return func() tea.Msg {
		var r protocol.PluginListResult
		if err := u.session.Call(u.ctx, "plugin/list", protocol.PluginListParams{Cwd: cwd}, &r); err != nil {
			return nil
		}
		if note := TrustNote(r.Data); note != "" {
			return saidMsg(note)
		}
		return nil
	}
}
