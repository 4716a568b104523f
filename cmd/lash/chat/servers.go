package chat

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// ServerState returns the state of an MCP server in a word or two. help has lines that say why it does not work and what to do; none if it works.
func ServerState(s *protocol.PluginServer) (state string, help []string) {
	if s.Login == protocol.LoginNeeded {
		return "needs login", []string{"To log in: lash mcp login " + s.Name}
	}
	if s.State == "ready" || s.State == "idle" {
		return s.State, nil
	}
	if s.Error != "" {
		help = strings.Split(strings.TrimSpace(termtext.Printable(s.Error)), "\n")
	}
	if s.State == "quarantined" {
		help = append(help, "It failed too often. To start it again: lash plugin reload")
	}
	return s.State, help
}

// listServers lists the MCP servers of the session's directory.
func listServers(u *ui, _ string) tea.Cmd {
	width := u.width
	return read(u, "plugin/list", protocol.PluginListParams{Cwd: u.talk.session.Cwd}, func(r *protocol.PluginListResult) string { return serverList(r, width) })
}

// serverList returns lines for each MCP server, with the names in a column.
func serverList(r *protocol.PluginListResult, width int) string {
	var lines []string
	column := 0
	for _, p := range r.Data {
		for i := range p.Servers {
			column = max(column, len(p.Servers[i].Name))
		}
	}
	for _, p := range r.Data {
		for i := range p.Servers {
			lines = append(lines, serverLines(&p.Servers[i], column, width)...)
		}
		if p.Status == protocol.PluginUntrusted && p.Scope == protocol.ScopeWorkspace {
			lines = append(lines, hanging("MCP servers of "+p.Name+" need your approval: lash plugin trust "+p.Name, 2, width))
		}
	}
	if len(lines) == 0 {
		return "No MCP servers. To add one: lash mcp add NAME PROGRAM"
	}
	return "MCP servers:\n" + strings.Join(append(lines, hanging("To add or remove servers: lash mcp", 2, width)), "\n")
}

// serverLines describes a server: its state and its tools, and below that its help.
func serverLines(s *protocol.PluginServer, column, width int) []string {
	state, help := ServerState(s)
	switch {
	case s.Tools == 1:
		state += " · 1 tool"
	case s.Tools > 1:
		state += fmt.Sprintf(" · %d tools", s.Tools)
	}
	lines := []string{fmt.Sprintf("  %-*s  %s", column, s.Name, state)}
	for _, l := range help {
		lines = append(lines, hanging(l, 4, width))
	}
	return lines
}

// hanging breaks a line between words, or within one that is too long, and indents all of it.
func hanging(line string, indent, width int) string {
	pad := strings.Repeat(" ", indent)
	return pad + strings.ReplaceAll(ansi.Wrap(line, max(width-indent, 20), ""), "\n", "\n"+pad)
}
