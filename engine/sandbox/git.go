package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"lashd/internal/pathresolve"
)

// grant is what a command gets of a git repository.
type grant struct{ write, keep []string }

// keptInGit are the parts of a git directory that decide which programs git runs.
var keptInGit = []string{"config", "config.worktree", "hooks", "info/attributes"}

// keptByPattern are such parts of the repositories of submodules, and the links between linked worktrees and their repository.
var keptByPattern = []string{"modules/*/config", "modules/*/hooks", "worktrees/*/commondir", "worktrees/*/gitdir", "worktrees/*/config.worktree"}

// keptFiles are files and directories of a workspace from which editors, shells and lashd start programs.
var keptFiles = []string{
	".agents", ".vscode", ".idea", ".mcp.json", ".envrc", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv",
	".zprofile", ".zlogin", ".gitconfig", ".config/git", ".config/fish", ".config/systemd", ".config/autostart", ".config/lashd",
}

// repository returns the parts of the workspace's git repository that a command may and may not change. It makes a missing directory of
// hooks, because a command could make it otherwise. In a linked worktree the repository is elsewhere, and the command may write to it.
func repository(workspace string) grant {
	dir := filepath.Join(workspace, ".git")
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return bare(workspace)
	case info.IsDir():
		return gitDir(dir)
	case !info.Mode().IsRegular():
		return grant{keep: []string{dir}}
	}
	own, common := linked(dir)
	if own == "" {
		return grant{keep: []string{dir}}
	}
	g := gitDir(common)
	g.keep = append(g.keep, dir)
	return g
}

// gitDir returns what a command gets of a git directory. It is mounted by itself, so that it cannot be moved away.
func gitDir(dir string) grant {
	_ = os.Mkdir(filepath.Join(dir, "hooks"), 0o755) // if this fails, the directory exists, or the command cannot make it
	g := grant{write: []string{dir}}
	for _, name := range keptInGit {
		g.keep = append(g.keep, existing(dir, name)...)
	}
	for _, pattern := range keptByPattern {
		names, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are valid; a directory with a wildcard in its name matches nothing
		for _, path := range names {
			g.keep = append(g.keep, existing(filepath.Dir(path), filepath.Base(path))...)
		}
	}
	return g
}

// bare returns what a command gets of a workspace that is a repository itself.
func bare(workspace string) grant {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(workspace, name)); err != nil {
			return grant{}
		}
	}
	return grant{keep: gitDir(workspace).keep}
}

// linked returns the git directory of a linked worktree and the one that it shares with others; "" if the file .git does not lead to both,
// or if the shared directory does not know this worktree. So a file that a command wrote grants nothing.
func linked(file string) (own, common string) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", ""
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok {
		return "", ""
	}
	if own, err = pathresolve.Existing(beside(filepath.Dir(file), target)); err != nil {
		return "", ""
	}
	back, err := os.ReadFile(filepath.Join(own, "gitdir"))
	if err != nil || beside(own, strings.TrimSpace(string(back))) != file {
		return "", ""
	}
	shared, err := os.ReadFile(filepath.Join(own, "commondir"))
	if err != nil {
		return "", ""
	}
	common, err = pathresolve.Existing(beside(own, strings.TrimSpace(string(shared))))
	if err != nil || filepath.Dir(own) != filepath.Join(common, "worktrees") {
		return "", ""
	}
	return own, common
}

// beside returns a path that may be relative to a directory.
func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// kept returns the files of the workspace that a command cannot change.
func kept(workspace string) (all []string) {
	for _, name := range keptFiles {
		all = append(all, existing(workspace, name)...)
	}
	return all
}

// existing returns the path of a name in a directory, or nothing if there is no such file or the path contains a symbolic link.
func existing(dir, name string) []string {
	path := filepath.Join(dir, name)
	if real, err := pathresolve.Existing(path); err != nil || real != path {
		return nil
	}
	return []string{path}
}
