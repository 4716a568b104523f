package layout

import "strings"

// tools are lashd's tools for those of Claude Code.
var tools = map[string][]string{
	"Bash":         {"shell", "start_command", "start_monitor", "write_stdin", "read_output", "stop_command"},
	"BashOutput":   {"read_output"},
	"KillShell":    {"stop_command"},
	"Read":         {"read"},
	"Write":        {"write"},
	"Edit":         {"edit", "patch"},
	"MultiEdit":    {"edit", "patch"},
	"LS":           {"list"},
	"Glob":         {"glob", "list"},
	"Grep":         {"grep"},
	"TodoWrite":    {"update_plan"},
	"Task":         {"spawn_agent", "send_agent", "wait_agents", "list_agents", "close_agent"},
	"Agent":        {"spawn_agent", "send_agent", "wait_agents", "list_agents", "close_agent"},
	"Skill":        {"skill"},
	"WebFetch":     nil,
	"WebSearch":    nil,
	"NotebookEdit": nil,
	"NotebookRead": nil,
}

// Tools returns lashd's names of a tool of Claude Code; none if lashd has no such tool. Other names stay: they are those of lashd, of
// MCP servers and of plugins.
func Tools(name string) []string {
	if own, known := tools[name]; known {
		return own
	}
	return []string{name}
}

// Call splits an entry such as Bash(git diff:*) into the tool and what is in the parentheses.
func Call(entry string) (tool, limit string) {
	tool, limit, _ = strings.Cut(strings.TrimSuffix(entry, ")"), "(")
	return strings.TrimSpace(tool), strings.TrimSpace(limit)
}

// unservedTools returns what has no effect in the tools of an agent: limits in parentheses, and tools that lashd does not have.
func unservedTools(entries []string) (all []Unserved) {
	for _, entry := range entries {
		name, limit := Call(entry)
		switch {
		case len(Tools(name)) == 0:
			all = append(all, Unserved{name, "lashd has no such tool"})
		case limit != "" && limit != "*":
			all = append(all, Unserved{"(" + limit + ")", "the entry is about all calls of " + name + "; the rules and the mode of the session decide about each call"})
		}
	}
	return all
}
