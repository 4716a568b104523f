package manifest

import (
	"maps"
	"slices"

	"lashd/internal/strictjson"
)

// hooks reads a file of hooks, unless it was read before. A missing file is an error unless
// optional.
func (l *loading) hooks(name string, optional bool) {
	data, ok := l.once(name, optional)
	if !ok {
		return
	}
	hooks, problems := ParseHooks(name, data)
	l.plugin.CommandHooks = append(l.plugin.CommandHooks, hooks...)
	l.found = append(l.found, problems...)
}

// once reads a file unless it was read before. Several fields may refer to the same file.
func (l *loading) once(name string, optional bool) ([]byte, bool) {
	if l.files[name] {
		return nil, false
	}
	l.files[name] = true
	return l.read(name, optional)
}

// inlineHooks reads hooks inside the manifest, with or without the member "hooks" around them.
func (l *loading) inlineHooks(s *source) {
	parse := s.parseEvents
	for key := range strictjson.Members(s.data) {
		if key == "hooks" {
			parse = s.parseHooks
		}
	}
	l.plugin.CommandHooks = append(l.plugin.CommandHooks, parse()...)
	l.found = append(l.found, s.problems()...)
}

// servers reads a file of MCP servers, unless it was read before.
func (l *loading) servers(name string, optional bool) {
	data, ok := l.once(name, optional)
	if !ok {
		return
	}
	servers, problems := ParseServers(name, data)
	l.found = append(l.found, problems...)
	l.addServers(name, servers)
}

// inlineServers reads MCP servers inside the manifest.
func (l *loading) inlineServers(s *source) {
	servers := s.parseServers()
	l.found = append(l.found, s.problems()...)
	l.addServers(s.file, servers)
}

// addServers adds servers of one file. A name that another file uses is an error.
func (l *loading) addServers(file string, servers map[string]Server) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if _, taken := l.plugin.MCPServers[name]; taken {
			l.fail(file, "another file of the plugin also defines the server %q", name)
			continue
		}
		if l.plugin.MCPServers == nil {
			l.plugin.MCPServers = map[string]Server{}
		}
		l.plugin.MCPServers[name] = servers[name]
	}
}
