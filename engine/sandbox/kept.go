package sandbox

import (
	"os"
	"path/filepath"
	"slices"

	"lashd/engine/authority"
	"lashd/internal/pathresolve"
)

// keptFiles are files and directories of a workspace from which editors, shells and lashd start programs.
var keptFiles = []string{
	".agents", ".claude", ".vscode", ".idea", ".mcp.json", ".envrc", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv",
	".zprofile", ".zlogin", ".gitconfig", ".config/git", ".config/fish", ".config/systemd", ".config/autostart", ".config/lashd",
}

// kept returns the files of the workspace that a command must not change, whether they exist or not.
func kept(workspace string) (all []string) {
	for _, name := range keptFiles {
		all = append(all, filepath.Join(workspace, name))
	}
	return all
}

// guard returns what a program that writes to a workspace may write to besides, and what it must not change there.
func guard(workspace, home string) grant {
	g := repository(workspace, home)
	g.keep = append(g.keep, kept(workspace)...)
	return g
}

// linkedPlugins returns the directories of the user's plugins that are links. lashd runs such a plugin without approval, so a command must not
// change it even if it is in the workspace.
func (p Places) linkedPlugins() (all []string) {
	if p.Home == "" {
		return nil
	}
	dir := filepath.Join(p.Home, ".agents", "plugins")
	entries, _ := os.ReadDir(dir) // without the directory there are no plugins
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}

// within returns where paths lead, as far as they exist and a command could change them. A path that leads to a whole writable directory is left
// out: otherwise a link could make the workspace read-only.
func within(writable, paths []string) (all []string) {
	for _, path := range paths {
		real, err := pathresolve.Existing(path)
		if err != nil || slices.Contains(writable, real) {
			continue
		}
		if isIn(real, writable) {
			all = append(all, real)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isIn reports whether a path is one of several directories or in one of them.
func isIn(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return authority.Inside(path, dir) })
}
