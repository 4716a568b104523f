package manifest

import (
	"maps"
	"slices"

	"lashd/internal/strictjson"
)

func (l *loading) hooks(name string, optional bool) {
	data, ok := l.once(name, optional)
	if !ok {
		return
	}
	hooks, problems := ParseHooks(name, data)
	l.plugin.CommandHooks = append(l.plugin.CommandHooks, hooks...)
	l.found = append(l.found, problems...)
}

// once reads a file that was not read yet.
func (l *loading) once(name string, optional bool) ([]byte, bool) {
	if l.files[name] {
		return nil, false
	}
	l.files[name] = true
	return l.read(name, optional)
}

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

func (l *loading) servers(name string, optional bool) {
	data, ok := l.once(name, optional)
	if !ok {
		return
	}
	servers, problems := ParseServers(name, data)
	l.found = append(l.found, problems...)
	l.addServers(name, servers)
}

func (l *loading) inlineServers(s *source) {
	servers := s.parseServers()
	l.found = append(l.found, s.problems()...)
	l.addServers(s.file, servers)
}

func (l *loading) addServers(file string, servers map[string]Server) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if _, taken := l.plugin.MCPServers[name]; taken {
			l.fail(file, "there is a server %q in another file of the plugin", name)
			continue
		}
		if l.plugin.MCPServers == nil {
			l.plugin.MCPServers = map[string]Server{}
		}
		l.plugin.MCPServers[name] = servers[name]
	}
}
