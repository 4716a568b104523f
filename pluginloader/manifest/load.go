package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"lashd/internal/strictjson"
)

// Plugin is what a directory contributes, whichever files say it. What is absent has its default in it, where it has one
// here.
type Plugin struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	File        string `json:"file"` // that names it
	Contributions
	CommandHooks []CommandHook `json:"commandHooks,omitempty"`
	Warnings     Problems      `json:"warnings,omitempty"`
}

// Manifests are where a plugin.json may be, in its directory; the first that is there counts.
func Manifests() []string {
	return []string{"plugin.json", ".claude-plugin/plugin.json", ".codex-plugin/plugin.json"}
}

const (
	hooksPath   = "hooks/hooks.json"
	serversPath = ".mcp.json"
)

// ignored are what other agents find in the directory of a plugin, and nothing here does.
var ignored = []string{"agents", "commands", "output-styles", "skills", ".lsp.json", "settings.json"}

// loading is a directory that is being read.
type loading struct {
	root   *os.Root
	plugin *Plugin
	files  map[string]bool // of hooks and servers, that were read
	found  Problems
}

// Load reads the plugin in a directory. A directory without a manifest is one if it has hooks or servers of other agents;
// then it has the name of the directory. The error is a Problems, with every mistake in every file; what is wrong with one
// file is known only if those that it depends on are right.
func Load(root *os.Root) (*Plugin, error) {
	l := &loading{root: root, plugin: &Plugin{}, files: map[string]bool{}}
	l.manifest()
	l.hooks(hooksPath, true)
	l.servers(serversPath, true)
	l.unseen()
	warnings, mistakes := l.found.split()
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	l.plugin.Warnings = warnings
	l.plugin.defaults()
	return l.plugin, nil
}

// read reads a file. If it is optional it may be missing.
func (l *loading) read(name string, optional bool) ([]byte, bool) {
	data, err := readFile(l.root, name)
	if err == nil {
		return data, true
	}
	if !optional || !errors.Is(err, fs.ErrNotExist) {
		l.fail(name, "%v", err)
	}
	return nil, false
}

func (l *loading) fail(file, format string, args ...any) {
	l.found = append(l.found, Problem{File: file, Message: fmt.Sprintf(format, args...)})
}

func (l *loading) manifest() {
	for _, name := range Manifests() {
		if data, ok := l.read(name, true); ok {
			l.parse(name, data)
			return
		}
		if len(l.found) > 0 {
			return
		}
	}
	l.unnamed()
}

// unnamed names a plugin that has no manifest.
func (l *loading) unnamed() {
	for _, name := range []string{hooksPath, serversPath} {
		if _, err := l.root.Stat(name); err == nil {
			l.plugin.Name, l.plugin.File = path.Base(strings.ReplaceAll(l.root.Name(), `\`, "/")), name
		}
	}
	switch f := forms["id"]; {
	case l.plugin.File == "":
		l.fail("plugin.json", "missing; a plugin has this file or %s", strings.Join(append(Manifests()[1:], hooksPath, serversPath), ", "))
	case !f.fits().MatchString(l.plugin.Name):
		l.fail(l.plugin.File, "the plugin has no plugin.json, and %s is no name for it: it must be %s", strictjson.Quote(l.plugin.Name), f.want)
	}
}

func (l *loading) parse(name string, data []byte) {
	f, problems := Parse(name, data)
	l.found = append(l.found, problems...)
	if f == nil {
		return
	}
	p := l.plugin
	p.Name, p.Version, p.Description, p.File = f.Name, f.Version, f.Description, name
	if f.Lashd != nil {
		p.Contributions = *f.Lashd
		p.MCPServers = maps.Clone(p.MCPServers)
	}
	l.references(name, data, "hooks", f.Hooks, l.hooks, l.inlineHooks)
	l.references(name, data, "mcpServers", f.MCPServers, l.servers, l.inlineServers)
}

// unseen warns of what is in the directory for other agents only.
func (l *loading) unseen() {
	for _, name := range ignored {
		if _, err := l.root.Lstat(name); err == nil {
			l.found = append(l.found, Problem{File: name, Message: "is for other agents and has no effect in lashd", Warning: true})
		}
	}
}

// defaults fills in what hooks and servers come to if nothing is said.
func (p *Plugin) defaults() {
	p.Hooks = slices.Clone(p.Hooks)
	for i := range p.Hooks {
		h := &p.Hooks[i]
		if h.OnError == "" && h.On == SlotBeforeToolCall {
			h.OnError = OnErrorDeny
		}
		h.OnError = cmp.Or(h.OnError, OnErrorFail)
	}
	for name, server := range p.MCPServers {
		if server.URL != "" {
			server.Type = TransportHTTP
		}
		server.Type = cmp.Or(server.Type, TransportStdio)
		p.MCPServers[name] = server
	}
}
