package manifest

import (
	"os"
	"path"
	"slices"

	"lashd/pluginloader/layout"
)

// isLayout reports whether the directory is the copy of a layout: it has the name of one, and nothing that a plugin with files of its own
// has.
func (l *loading) isLayout(name string) bool {
	if name != layout.HomeName && name != layout.ProjectName {
		return false
	}
	return !slices.ContainsFunc(append(Manifests(), hooksPath, "skills", "commands", "agents"), l.exists)
}

// LoadAny is Load, except that a directory without a plugin of its own may have the layout of a workspace. `lash plugin check` calls it.
func LoadAny(root *os.Root) (*Plugin, error) {
	l := newLoading(root)
	own := append(Manifests(), hooksPath, "skills", "commands", "agents")
	if !slices.ContainsFunc(own, l.exists) && slices.ContainsFunc(layout.Dirs(), l.exists) {
		return LoadLayout(root, layout.ProjectName)
	}
	return Load(root)
}

// LoadLayout reads the layout of other agents in the user's home directory or in a workspace as a plugin with that name. The error is a
// Problems.
func LoadLayout(root *os.Root, name string) (*Plugin, error) {
	l := newLoading(root)
	l.noLinks = true
	l.plugin.Name, l.plugin.Layout, l.plugin.File = name, true, path.Dir(layout.Settings)
	l.plugin.Description = layout.About(name)
	for _, dir := range layout.Dirs() {
		if l.exists(dir) {
			l.markdown(dir)
		}
	}
	l.settings(layout.Settings + ".json")
	if name == layout.ProjectName {
		l.settings(layout.Settings + ".local.json")
		if l.exists(layout.Servers) {
			l.servers(layout.Servers, true)
		}
	}
	for _, server := range l.disabled {
		delete(l.plugin.MCPServers, server)
	}
	return l.end()
}
