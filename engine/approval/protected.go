package approval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"lashd/internal/pathresolve"
)

// protectedPaths are files and directories that can run code later or that decide what may run: write access to one of
// them gives all rights of its owner. Each is a path of one or more names that may occur anywhere in a path.
var protectedPaths = [][]string{
	{".git"}, {"git~1"}, {".gitconfig"}, {".config", "git"}, // hooks, aliases, filters; git~1 is the short name of .git on some file systems
	{".agents"}, {".claude"}, {".config", "lashd"}, {".local", "share", "lashd"}, // of lashd
	{".vscode"}, {".idea"}, {".gitmodules"}, {".mcp.json"}, {".envrc"}, {".ssh"},
	{".bashrc"}, {".bash_profile"}, {".bash_login"}, {".bash_logout"}, {".bash_aliases"}, {".profile"}, {".inputrc"},
	{".zshrc"}, {".zshenv"}, {".zprofile"}, {".zlogin"}, {".zlogout"}, {".kshrc"}, {".mkshrc"}, {".cshrc"}, {".tcshrc"}, {".login"}, {".logout"},
	{".xprofile"}, {".xinitrc"}, {".xsessionrc"}, {".pam_environment"},
	{".config", "fish"}, {".config", "environment.d"}, {".config", "autostart"}, {".config", "systemd"},
}

// protected reports whether a path may lead to a protected file. A path that cannot be resolved may.
func protected(at pathresolve.Places) bool {
	return len(at) == 0 || slices.ContainsFunc(at, func(name string) bool { return namesProtected(name) || inRepository(name) })
}

// inLinkedPlugin reports whether a path may lead into a plugin that the user or the workspace has as a link. Sandboxed commands cannot change
// those of the user either. A plugin that is or contains the workspace does not count, because its author works there.
func inLinkedPlugin(at pathresolve.Places, workspace string) bool {
	home, _ := os.UserHomeDir() // without one only the workspace has plugins
	for _, dir := range []string{home, workspace} {
		for _, plugin := range linkedPlugins(dir) {
			if at.MayBeIn(plugin) && !pathresolve.Of("", workspace).In(plugin) {
				return true
			}
		}
	}
	return false
}

// linkedPlugins returns where the links in the plugin directory of a home or workspace lead.
func linkedPlugins(dir string) (all []pathresolve.Places) {
	if dir == "" {
		return nil
	}
	plugins := filepath.Join(dir, ".agents", "plugins")
	entries, _ := os.ReadDir(plugins) // without the directory there are no plugins
	for _, e := range entries {
		if at := pathresolve.Of(plugins, e.Name()); e.Type()&os.ModeSymlink != 0 && len(at) > 0 {
			all = append(all, at)
		}
	}
	return all
}

// namesProtected compares the names of a path with protectedPaths as the most tolerant file system would.
func namesProtected(name string) bool {
	names := strings.Split(filepath.ToSlash(name), "/")
	for i := range names {
		names[i] = normalizeName(names[i])
	}
	return slices.ContainsFunc(protectedPaths, func(path []string) bool {
		for i := range len(names) - len(path) + 1 {
			if slices.Equal(names[i:i+len(path)], path) {
				return true
			}
		}
		return false
	})
}

// normalizeName normalizes a name like a file system that ignores case, invisible characters, and trailing dots and blanks.
func normalizeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
	name, _, _ = strings.Cut(name, ":") // an NTFS stream of the file
	return strings.TrimRight(name, ". ")
}

// inRepository reports whether a path is inside of a git directory with any name, such as a bare repository or the
// target of a .git file.
func inRepository(name string) bool {
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return true
		}
		if filepath.Dir(dir) == dir {
			return false
		}
	}
}

// isRepository reports whether dir has the files of a git directory or of a linked worktree's one.
func isRepository(dir string) bool {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}
