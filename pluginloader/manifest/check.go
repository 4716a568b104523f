package manifest

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"lashd/engine/tool"
)

// contributions checks the rules that involve several fields. The tags of the fields state the
// others.
func (s *source) contributions(c *Contributions) {
	const at = "/lashd"
	if c.Process == nil {
		s.needProcess(c)
	} else if command := c.Process.Command; len(command) > 0 {
		s.program(at+"/process/command/0", command[0])
	}
	s.hooks(at+"/hooks", c.Hooks)
	s.tools(at+"/tools", c.Tools)
	s.operations(at+"/operations", c.Operations)
	s.tasks(at+"/tasks", c.Tasks)
	s.servers(at+"/mcpServers", c.MCPServers)
	s.schema(at+"/config", c.Config)
	if c.Input != nil {
		s.schema(at+"/input/schema", c.Input.Schema)
	}
	for i, t := range c.Triggers {
		s.schema(fmt.Sprint(at, "/triggers/", i, "/payload"), t.Payload)
	}
	listed := map[Capability]bool{}
	for i, p := range c.Capabilities {
		if listed[p] {
			s.at(fmt.Sprint(at, "/capabilities/", i), "%q is listed twice", p)
		}
		listed[p] = true
	}
	s.monitors(at+"/monitors", c)
	if c.ToolSwitches != nil {
		s.switches(at+"/toolSwitches", *c.ToolSwitches)
	}
}

// monitors rejects duplicate IDs. It also rejects a sandbox and limits, because lashd runs monitors
// as commands of the session, without them.
func (s *source) monitors(at string, c *Contributions) {
	seen := map[string]bool{}
	for i, m := range c.Monitors {
		if seen[m.ID] {
			s.at(fmt.Sprint(at, "/", i, "/monitorId"), "%q is listed twice", m.ID)
		}
		seen[m.ID] = true
	}
	if len(c.Monitors) > 0 && (c.Sandbox != nil || c.Limits != nil) {
		s.atKey(at, "\"sandbox\" and \"limits\" do not apply to monitors; use monitors or these, not both")
	}
}

// switches rejects tools that are both switched on and off.
func (s *source) switches(at string, w Switches) {
	on := map[string]bool{}
	for _, name := range w.On {
		on[name] = true
	}
	for i, name := range w.Off {
		if on[name] {
			s.at(fmt.Sprint(at, "/off/", i), "%q is also in on", name)
		}
	}
}

// needProcess reports fields that have no effect without a process to serve them.
func (s *source) needProcess(c *Contributions) {
	const why = `needs a "process"`
	for _, part := range []struct {
		name  string
		there bool
	}{{"hooks", len(c.Hooks) > 0}, {"operations", len(c.Operations) > 0}, {"tasks", len(c.Tasks) > 0}, {"codeExecutor", c.CodeExecutor != nil}, {"capabilities", len(c.Capabilities) > 0}, {"config", len(c.Config) > 0},
		{"state", c.State != ""}, {"moreTools", c.MoreTools}, {"prepares", c.Prepares}, {"input", c.Input != nil}, {"triggers", len(c.Triggers) > 0}, {"extensions", len(c.Extensions) > 0},
	} {
		if part.there {
			s.atKey("/lashd/"+part.name, "%q %s", part.name, why)
		}
	}
	for i, t := range c.Tools {
		if len(t.Command) == 0 {
			s.at(fmt.Sprint("/lashd/tools/", i), `the tool %q %s, or a "command" of its own`, t.Name, why)
		}
	}
}

// program checks the program of a command. A path must be absolute or start with a variable,
// because a relative one would depend on the directory in which the command runs.
func (s *source) program(pointer, name string) {
	inside, ok := strings.CutPrefix(name, "${"+varRoot+"}/")
	switch {
	case strings.TrimSpace(name) == "":
		s.at(pointer, "the name of the program is empty")
	case ok && !fs.ValidPath(path.Clean(inside)):
		s.at(pointer, "the program is outside the plugin's directory")
	case strings.Contains(name, "/") && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "${"):
		s.at(pointer, "the path of the program must be absolute; for a file of the plugin, write ${%s}/%s", varRoot, path.Clean(name))
	}
}

// hooks checks that each slot has one hook, and that only slots with something to reject use deny.
func (s *source) hooks(at string, hooks []Hook) {
	seen := map[Slot]bool{}
	for i, h := range hooks {
		here := fmt.Sprint(at, "/", i)
		if seen[h.On] {
			s.at(here, "another hook has the slot %q; a plugin has one hook per slot", h.On)
		}
		seen[h.On] = true
		if h.OnError == OnErrorDeny && !h.On.refuses() {
			s.at(here+"/onError", "a hook at %q cannot deny anything; use allow or fail", h.On)
		}
	}
}

// refuses reports whether a hook at the slot can reject a turn or a call.
func (slot Slot) refuses() bool { return slot == SlotBeforeTurn || slot == SlotBeforeToolCall }

// tasks rejects empty and duplicate names of task handlers.
func (s *source) tasks(at string, names []string) {
	for i, name := range names {
		switch {
		case name == "":
			s.at(fmt.Sprint(at, "/", i), "the task name is empty")
		case slices.Contains(names[:i], name):
			s.at(fmt.Sprint(at, "/", i), "another entry has the name %q", name)
		}
	}
}

// operations checks names and schemas of operations.
func (s *source) operations(at string, operations []Operation) {
	seen := map[string]bool{}
	for i, o := range operations {
		here := fmt.Sprint(at, "/", i)
		if seen[o.Name] {
			s.at(here+"/name", "another operation has the name %q", o.Name)
		}
		seen[o.Name] = true
		s.schema(here+"/inputSchema", o.Input)
		s.schema(here+"/outputSchema", o.Output)
	}
}

// schema checks that a field holds a JSON Schema. An absent field passes.
func (s *source) schema(pointer string, raw []byte) {
	if len(raw) == 0 {
		return
	}
	if !isObject(raw) {
		s.at(pointer, "a JSON Schema must be an object")
		return
	}
	if err := tool.CheckSchema(raw); err != nil {
		s.at(pointer, "not a JSON Schema: %v", err)
	}
}

// servers checks that each MCP server has either a command or a URL, and the fields for it.
func (s *source) servers(at string, servers map[string]Server) {
	for name, server := range servers {
		here := at + "/" + escape(name)
		switch {
		case server.Command == "" && server.URL == "":
			s.at(here, `a server needs a "command", or a "url"`)
		case server.Command != "" && server.URL != "":
			s.atKey(here+"/url", `a server has a "command" or a "url", not both`)
		case server.URL != "":
			s.remote(here, server)
		default:
			s.local(here, server)
		}
	}
}

// local checks a server that lashd starts.
func (s *source) local(here string, server Server) {
	if server.Type == TransportHTTP {
		s.at(here+"/type", `a server of the type "http" needs a "url"`)
	}
	if len(server.Headers) > 0 {
		s.atKey(here+"/headers", `"headers" are only for a server with a "url"`)
	}
	if server.OAuth != nil {
		s.atKey(here+"/oauth", `"oauth" is only for a server with a "url"`)
	}
	s.program(here+"/command", server.Command)
}

// remote checks a server with a URL. A URL that starts with a variable is checked only when it is
// used.
func (s *source) remote(here string, server Server) {
	if server.Type == TransportStdio {
		s.at(here+"/type", `a server of the type "stdio" needs a "command"`)
	}
	for _, part := range []struct {
		name  string
		there bool
	}{
		{"args", len(server.Args) > 0}, {"env", len(server.Env) > 0}, {"sandbox", server.Sandbox != ""}, {"network", server.Network}, {"hosts", len(server.Hosts) > 0},
		{"write", len(server.Write) > 0},
	} {
		if part.there {
			s.atKey(here+"/"+part.name, `%q is only for a server with a "command"`, part.name)
		}
	}
	u, err := url.Parse(variable().ReplaceAllString(server.URL, "x"))
	switch {
	case err != nil:
		s.at(here+"/url", "not a URL: %v", err)
	case u.Scheme != "http" && u.Scheme != "https" && !strings.HasPrefix(server.URL, "${"):
		s.at(here+"/url", "the URL must begin with http:// or https://")
	case u.Host == "" && !strings.HasPrefix(server.URL, "${"):
		s.at(here+"/url", "the URL has no host")
	case u.User != nil:
		s.at(here+"/url", `the URL contains a password; use "headers"`)
	}
}
