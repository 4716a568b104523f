package layout

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Selection lists the files and directories of a directory that belong to a plugin; nil: all. Other entries are neither read nor
// listed, and links are left out.
type Selection []string

// Names of the plugins that the layouts of the user and of a workspace become.
const (
	HomeName    = "home"
	ProjectName = "project"
)

// Home returns the layout in the home directory of the user.
func Home() Selection { return Selection(common) }

// Project returns the layout in a workspace.
func Project() Selection {
	return append(slices.Clone(common), Settings+".local.json", Servers)
}

// Files of a layout that are not Markdown.
const (
	Settings = ".claude/settings" // of which there is a .json and a .local.json
	Servers  = ".mcp.json"
)

// common are the parts that both layouts have.
var common = []string{
	".agents/skills", ".agents/commands", ".agents/agents", ".claude/skills", ".claude/commands", ".claude/agents", Settings + ".json",
}

// Children returns the selected names in a directory of which only parts are selected. ok is false for all other directories.
func (s Selection) Children(dir string) (names []string, ok bool) {
	prefix := dir + "/"
	if dir == "." {
		prefix = ""
	}
	for _, at := range s {
		if rest, inside := strings.CutPrefix(at, prefix); inside {
			name, _, _ := strings.Cut(rest, "/")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), len(names) > 0
}

// Dirs returns the directories in which markdown files may be, without their last part.
func Dirs() []string { return []string{path.Dir(Settings), ".agents"} }

// Shown returns the directory that stands for a part of a layout in lists for people: .claude or .agents. Other paths stay.
func Shown(path string) string {
	for _, part := range Project() {
		if part != Servers && strings.HasSuffix(filepath.ToSlash(path), "/"+part) {
			return filepath.Dir(path)
		}
	}
	return path
}

// About describes a layout.
func About(name string) string {
	if name == HomeName {
		return "skills, commands, agents and settings of .claude and .agents in your home directory"
	}
	return "skills, commands, agents and settings of .claude and .agents in the workspace, and its .mcp.json"
}
