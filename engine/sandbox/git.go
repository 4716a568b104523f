package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lashd/engine/authority"
	"lashd/internal/pathresolve"
)

// grant is what a command gets of a git repository: the git directories that it may write to, and the files in them that it may not change.
// Files that do not exist are among the latter, because Box.Changes looks for them.
type grant struct{ write, keep []string }

// keptInGit are the parts of a git directory that decide which programs git runs.
var keptInGit = []string{"config", "config.worktree", "hooks", "info/attributes"}

// keptByPattern are the links between linked worktrees and their repository.
var keptByPattern = []string{"worktrees/*/commondir", "worktrees/*/gitdir", "worktrees/*/config.worktree"}

// repository returns the parts of the workspace's git repository that a command may and may not change. The repository may be above the
// workspace, or elsewhere if the workspace is in a linked worktree or a submodule. Then the command may write to its git directory, and not
// to its other files. home limits the search: a repository of the home directory itself holds more than the workspace's project.
func repository(workspace, home string) grant {
	top := workspace
	for !exists(filepath.Join(top, ".git")) {
		if isGitDir(top) {
			return grant{keep: gitDir(top).keep}
		}
		if top = filepath.Dir(top); top == "/" || authority.Inside(home, top) {
			return grant{}
		}
	}
	if at := filepath.Join(top, ".git"); top == workspace || isGitDir(at) || linked(at) != "" {
		return repositoryAt(at)
	}
	return grant{}
}

// repositoryAt returns the grant for a repository by its file or directory .git.
func repositoryAt(dir string) grant {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return grant{}
	case info.IsDir():
		return gitDir(dir)
	case !info.Mode().IsRegular():
		return grant{keep: []string{dir}}
	}
	g := grant{keep: []string{dir}}
	if at := linked(dir); at != "" {
		g = gitDir(at)
		g.keep = append(g.keep, dir)
	}
	return g
}

// gitDir returns what a command gets of a git directory. It is mounted by itself, so that it cannot be moved away. gitDir makes a missing
// directory of hooks, because a command could make it otherwise.
func gitDir(dir string) grant {
	_ = os.Mkdir(filepath.Join(dir, "hooks"), 0o755) // if this fails, the directory exists, or the command cannot make it
	g := grant{write: []string{dir}, keep: startsPrograms(dir)}
	for _, sub := range submodules(filepath.Join(dir, "modules")) {
		g.keep = append(g.keep, startsPrograms(sub)...)
	}
	for _, pattern := range keptByPattern {
		names, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are valid; a directory with a wildcard in its name matches nothing
		g.keep = append(g.keep, names...)
	}
	return g
}

// startsPrograms returns the files of a git directory that decide which programs git runs.
func startsPrograms(dir string) (all []string) {
	for _, name := range keptInGit {
		all = append(all, filepath.Join(dir, name))
	}
	return all
}

// mostSubmodules limits how many directories are searched for git directories of submodules.
const mostSubmodules = 500

// submodules returns the git directories below the directory modules of another. The name of a submodule may contain slashes.
func submodules(dir string) (all []string) {
	for left := []string{dir}; len(left) > 0 && len(left) < mostSubmodules; left = left[1:] {
		at := left[0]
		if isGitDir(at) {
			all, at = append(all, at), filepath.Join(at, "modules")
		}
		entries, _ := os.ReadDir(at) // most git directories have no modules
		for _, e := range entries {
			if e.IsDir() {
				left = append(left, filepath.Join(at, e.Name()))
			}
		}
	}
	return all
}

// isGitDir reports whether a directory is a git directory, and is reached without links. Its configuration is enough: a command cannot change
// that, but it could move the other parts away so that the next command gets the configuration.
func isGitDir(dir string) bool {
	if real, err := pathresolve.Existing(dir); err != nil || real != dir {
		return false
	}
	if !slices.ContainsFunc([]string{"HEAD", "objects", "refs"}, func(name string) bool { return !exists(filepath.Join(dir, name)) }) {
		return true
	}
	settings, _ := readConfig(filepath.Join(dir, "config")) // what cannot be read is no configuration
	return slices.ContainsFunc(settings, func(s setting) bool { return s.name == "core.repositoryformatversion" })
}

// exists reports whether there is a file or link of this name.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// linked returns the git directory to which a file .git leads: the shared one for a linked worktree, and its own for a submodule. It is empty
// if that directory does not name this file's directory as its own. So a file that a command wrote grants nothing.
func linked(file string) string {
	data, err := readSmall(file)
	if err != nil {
		return ""
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok {
		return ""
	}
	own, err := pathresolve.Existing(beside(filepath.Dir(file), target))
	switch {
	case err != nil:
		return ""
	case exists(filepath.Join(own, "commondir")):
		return shared(own, file)
	case filepath.Dir(file) == worktreeOf(own):
		return own
	}
	return ""
}

// shared returns the git directory that a linked worktree shares with others, if the worktree's directory there names its file .git.
func shared(own, file string) string {
	back, err := readSmall(filepath.Join(own, "gitdir"))
	if err != nil || beside(own, strings.TrimSpace(string(back))) != file {
		return ""
	}
	data, err := readSmall(filepath.Join(own, "commondir"))
	if err != nil {
		return ""
	}
	common, err := pathresolve.Existing(beside(own, strings.TrimSpace(string(data))))
	if err != nil || filepath.Dir(own) != filepath.Join(common, "worktrees") {
		return ""
	}
	return common
}

// worktreeOf returns the directory that the configuration of a git directory names as its worktree; empty if it names none.
func worktreeOf(dir string) string {
	settings, err := readConfig(filepath.Join(dir, "config"))
	if err != nil {
		return ""
	}
	for _, s := range slices.Backward(settings) {
		if s.name == "core.worktree" {
			return beside(dir, s.value)
		}
	}
	return ""
}

// beside returns a path that may be relative to a directory.
func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
