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
	"lashd/pluginloader/layout"
	"lashd/rpc/protocol"
)

// Plugin is everything that a plugin's directory contributes, from all its files, with defaults
// filled in. It does not change after Load.
type Plugin struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	File        string `json:"file"` // the file that names the plugin
	Contributions
	// CommandHooks come from hooks files and run as commands. Hooks of the process are in
	// Contributions.
	CommandHooks []CommandHook `json:"commandHooks,omitempty"`
	// Layout is set for a layout of other agents in the home directory or in a workspace.
	Layout bool `json:"layout,omitempty"`
	// Rules are permissions in the settings of a layout. They ask or deny.
	Rules []protocol.ApprovalRule `json:"rules,omitempty"`
	// Skills, Commands and Agents come from Markdown files.
	Skills   []*layout.Prompt `json:"skills,omitempty"`
	Commands []*layout.Prompt `json:"commands,omitempty"`
	Agents   []*layout.Agent  `json:"agents,omitempty"`
	// Warnings concern parts that have no effect.
	Warnings Problems `json:"warnings,omitempty"`
}

// Manifests returns the paths at which a plugin may have its manifest. The first that exists
// counts.
func Manifests() []string {
	return []string{"plugin.json", ".claude-plugin/plugin.json", ".codex-plugin/plugin.json"}
}

const (
	// Files that are read without being named in a manifest.
	hooksPath   = "hooks/hooks.json"
	serversPath = ".mcp.json"
)

// ignored are entries of a plugin's directory that only other agents use.
var ignored = []string{"output-styles", ".lsp.json", "settings.json"}

// loading is the state of one Load.
type loading struct {
	root   *os.Root
	plugin *Plugin
	files  map[string]bool // files that were read
	found  Problems        // problems so far

	unserved map[layout.Unserved][]string // files with fields that have no effect
	noLinks  bool                         // links are left out
	disabled []string                     // servers that settings switch off
}

// Load reads the plugin in a directory. Without a manifest, a directory with hooks, MCP servers, skills, commands or agents
// of other agents is a plugin too, and has the directory's name. The copy of a layout is read by LoadLayout. The error is a Problems with all
// mistakes of all files. A file that another file refers to is checked only if the reference is valid.
func Load(root *os.Root) (*Plugin, error) {
	l := newLoading(root)
	if name := path.Base(strings.ReplaceAll(root.Name(), `\`, "/")); l.isLayout(name) {
		return LoadLayout(root, name)
	}
	l.manifest()
	l.hooks(hooksPath, true)
	l.servers(serversPath, true)
	l.markdown("")
	l.unseen()
	return l.end()
}

// newLoading returns the state at the beginning.
func newLoading(root *os.Root) *loading {
	return &loading{root: root, plugin: &Plugin{}, files: map[string]bool{}, unserved: map[layout.Unserved][]string{}}
}

// end returns the plugin, or its mistakes.
func (l *loading) end() (*Plugin, error) {
	l.warnUnserved()
	warnings, mistakes := l.found.split()
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	l.plugin.Warnings = warnings
	l.plugin.defaults()
	return l.plugin, nil
}

// read reads a file. A missing file is an error unless optional.
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

// fail records a mistake that concerns a file as a whole.
func (l *loading) fail(file, format string, args ...any) {
	l.found = append(l.found, Problem{File: file, Message: fmt.Sprintf(format, args...)})
}

// manifest reads the first manifest that exists.
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

// unnamed takes the name of a plugin without a manifest from its directory.
func (l *loading) unnamed() {
	for _, name := range []string{"agents", "commands", "skills", serversPath, hooksPath} {
		if _, err := l.root.Stat(name); err == nil {
			l.plugin.Name, l.plugin.File = path.Base(strings.ReplaceAll(l.root.Name(), `\`, "/")), name
		}
	}
	switch f := forms["id"]; {
	case l.plugin.File == "":
		l.fail("plugin.json", "missing; a plugin has this file or %s", strings.Join(append(Manifests()[1:], hooksPath, serversPath, "skills, commands or agents"), ", "))
	case !f.fits().MatchString(l.plugin.Name):
		l.fail(l.plugin.File, "the plugin has no plugin.json, and its directory's name %s is not valid: it must be %s", strictjson.Quote(l.plugin.Name), f.want)
	}
}

// parse reads a manifest and the files that it refers to.
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
	l.paths(name, data, "skills", f.Skills, l.skillsAt)
	l.paths(name, data, "commands", f.Commands, l.commandsAt)
	l.paths(name, data, "agents", f.Agents, l.agentsAt)
}

// unseen warns about files that only other agents use.
func (l *loading) unseen() {
	for _, name := range ignored {
		if _, err := l.root.Lstat(name); err == nil {
			l.found = append(l.found, Problem{File: name, Message: "is for other agents and has no effect in lashd", Warning: true})
		}
	}
}

// defaults fills in the effects of failing hooks and the types of servers.
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
