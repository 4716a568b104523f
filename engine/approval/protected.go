package approval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"lashd/internal/pathresolve"
)

// protectedPaths name files, and directories with all that is in them, that run code later or decide what may run: whoever may change one of
// them may do all that its owner may. Each is a path of one or more names, anywhere.
var protectedPaths = [][]string{
	{".git"}, {"git~1"}, {".gitconfig"}, {".config", "git"}, // hooks, aliases, filters; the second is what some file systems call the first
	{".agents", "plugins"}, {".config", "lashd"}, {".local", "share", "lashd"}, // of lashd
	{".vscode"}, {".mcp.json"}, {".envrc"}, {".ssh"},
	{".bashrc"}, {".bash_profile"}, {".bash_login"}, {".bash_logout"}, {".bash_aliases"}, {".profile"}, {".inputrc"},
	{".zshrc"}, {".zshenv"}, {".zprofile"}, {".zlogin"}, {".zlogout"}, {".kshrc"}, {".mkshrc"}, {".cshrc"}, {".tcshrc"}, {".login"}, {".logout"},
	{".xprofile"}, {".xinitrc"}, {".xsessionrc"}, {".pam_environment"},
	{".config", "fish"}, {".config", "environment.d"}, {".config", "autostart"}, {".config", "systemd"},
}

// protected tells whether a path may mean a protected file. One that cannot be followed may.
func protected(at pathresolve.Places) bool {
	return len(at) == 0 || slices.ContainsFunc(at, func(name string) bool { return namesProtected(name) || inRepository(name) })
}

// namesProtected compares names as the most careless file system does.
func namesProtected(name string) bool {
	names := strings.Split(filepath.ToSlash(name), "/")
	for i := range names {
		names[i] = careless(names[i])
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

// careless is a name as file systems may take it that do not see case, characters without a width, or dots and blanks at the end.
func careless(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
	name, _, _ = strings.Cut(name, ":") // a stream of the file
	return strings.TrimRight(name, ". ")
}

// inRepository tells whether a path is in a directory of git, whatever that is called: of a bare repository, or of one whose .git is a file.
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

func isRepository(dir string) bool {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}
