// Package skills gives sessions the skills, slash commands and kinds of subagents of all loaded plugins, and the built-in commands. The
// loader adds one Factory to each set of plugins.
//
// People run skills and commands by a slash command. The model sees the descriptions of skills in its prompt, and reads a skill with
// a tool. Nothing here runs a program: scripts of skills run through the tools for commands, by the rules of the session.
package skills

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lashd/engine/builtin/shell"
	"lashd/engine/builtin/subagents"
	"lashd/engine/plugin"
	"lashd/pluginloader/layout"
	"lashd/rpc/protocol"
)

// Source is a plugin with skills, commands or agents.
type Source struct {
	Plugin string // its name
	Root   string // its copy, which does not change
	Bare   bool   // its commands have no prefix: a layout of the user or of a workspace
	Skills []*layout.Prompt
	Texts  []*layout.Prompt // commands
	Agents []*layout.Agent
}

// Factory builds the plugin of sessions. It does not change.
type Factory struct {
	all     []offer
	agents  []agentOffer
	sources []Source
}

// offer is a skill or a command under the name that people and the model use.
type offer struct {
	*layout.Prompt
	name   string
	plugin string
	root   string // of the plugin's copy
}

// agentOffer is a kind of subagent under its name.
type agentOffer struct {
	*layout.Agent
	name string
}

// New returns a factory for the plugins in the order in which they register, and for the built-in commands. Of equal names the first
// counts, and a skill counts before a command of the same plugin.
func New(sources []Source) *Factory {
	f := &Factory{sources: sources}
	for _, s := range slices.Concat(sources, []Source{builtin}) {
		for _, p := range slices.Concat(s.Skills, s.Texts) {
			o := offer{p, s.named(p.Name), s.Plugin, s.Root}
			if _, taken := f.find(o.name); !taken {
				f.all = append(f.all, o)
			}
		}
		for _, a := range s.Agents {
			o := agentOffer{a, s.named(a.Name)}
			if !slices.ContainsFunc(f.agents, func(b agentOffer) bool { return b.name == o.name }) {
				f.agents = append(f.agents, o)
			}
		}
	}
	slices.SortFunc(f.all, func(a, b offer) int { return cmp.Compare(a.name, b.name) })
	return f
}

// named returns the name under which the source's texts are offered.
func (s *Source) named(name string) string {
	if s.Bare {
		return name
	}
	return s.Plugin + ":" + name
}

// find returns the offer with a name. A name without a plugin is enough if only one plugin has it.
func (f *Factory) find(name string) (offer, bool) {
	var found []offer
	for _, o := range f.all {
		if o.name == name {
			return o, true
		}
		if strings.HasSuffix(o.name, ":"+name) {
			found = append(found, o)
		}
	}
	if len(found) != 1 || strings.Contains(name, ":") {
		return offer{}, false
	}
	return found[0], true
}

// skill returns a skill that the model may read.
func (f *Factory) skill(name string) (offer, bool) {
	o, ok := f.find(name)
	return o, ok && o.Kind == layout.Skill && !o.HideModel
}

// dir returns the directory of a skill, which has its other files.
func (o offer) dir() string { return filepath.Join(o.root, filepath.FromSlash(o.Dir())) }

// variables are what a text can name.
func (o offer) variables(c plugin.BuildContext) layout.Variables {
	v := layout.Variables{Root: o.root, Project: c.Cwd, Session: string(c.SessionID)}
	if o.Kind == layout.Skill {
		v.Dir = o.dir()
	}
	return v
}

// ID implements plugin.Factory.
func (*Factory) ID() string { return protocol.CommandsID }

// Build implements plugin.Factory.
func (f *Factory) Build(c plugin.BuildContext) (plugin.Plugin, error) {
	return &instance{factory: f, context: c}, nil
}

// Extensions implements plugin.Extender. Commands in a sandbox may read the plugins that have skills or commands.
func (f *Factory) Extensions() []plugin.Extension {
	var roots []string
	for _, s := range f.sources {
		if len(s.Skills)+len(s.Texts) > 0 {
			roots = append(roots, s.Root)
		}
	}
	all := []plugin.Extension{{ID: shell.ReadableID, Payload: encode(roots)}}
	if len(f.agents) > 0 {
		all = append(all, plugin.Extension{ID: subagents.TypesID, Payload: encode(f.types())})
	}
	return all
}

// types returns the kinds of subagents.
func (f *Factory) types() (all []subagents.Type) {
	for _, a := range f.agents {
		all = append(all, subagents.Type{Name: a.name, Description: a.Description, Prompt: a.Body, Tools: own(a.Tools), Without: own(a.Without), Model: a.Model})
	}
	return all
}

// own returns lashd's names of tools; nil for no list, and for a list with all tools.
func own(names []string) (all []string) {
	if names == nil {
		return nil
	}
	all = []string{}
	for _, entry := range names {
		name, _ := layout.Call(entry)
		if name == "*" {
			return nil
		}
		all = append(all, layout.Tools(name)...)
	}
	return all
}

// encode returns the JSON of one of our own types.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return data
}

// maxFile is the most of a skill's file that the model reads at once, in bytes.
const maxFile = 128 << 10

// read returns a file of a skill. Links lead nowhere outside the plugin.
func (o offer) read(name string) (string, error) {
	root, err := os.OpenRoot(o.dir())
	if err != nil {
		return "", err
	}
	defer root.Close()
	data, err := root.ReadFile(filepath.FromSlash(name))
	if len(data) > maxFile {
		return string(data[:maxFile]) + "\n[cut after 128 KiB]", err
	}
	return string(data), err
}
