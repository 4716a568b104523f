package promptcontext

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"lashd/internal/pathresolve"
)

// project is the set of directories that may have instructions for a workspace.
type project struct {
	// dirs are the directories from the workspace up to the root of its repository, or only
	// the workspace if there is no repository.
	dirs []string
	// repo is the root of the repository. Empty: there is none.
	repo string
}

// location caches a path without symbolic links. Checking it takes two system calls instead
// of one for each part of the path.
type location struct {
	real string
	at   os.FileInfo
}

// of returns name without symbolic links, or name itself if it cannot be resolved.
func (l *location) of(name string) string {
	now, err := os.Stat(name)
	if err == nil && l.at != nil && os.SameFile(now, l.at) {
		if same, err := os.Lstat(l.real); err == nil && os.SameFile(same, l.at) {
			return l.real
		}
	}
	l.real, l.at = resolved(name), now
	return l.real
}

// climb finds the repository around cwd. It stops below a directory that everyone may write
// to, because files there may come from anyone. A workspace inside the state directory has
// no project. Both paths must be free of symbolic links.
func climb(cwd, state string) project {
	if within(state, cwd) {
		return project{}
	}
	var dirs []string
	for at := cwd; ; at = filepath.Dir(at) {
		if len(dirs) > 0 && shared(at) {
			break
		}
		dirs = append(dirs, at)
		if isRepository(at) {
			return project{dirs, at}
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	return project{dirs: []string{cwd}}
}

// resolved returns a path without symbolic links, or the path itself if it cannot be
// resolved.
func resolved(name string) string {
	if real, err := pathresolve.Existing(name); err == nil {
		return real
	}
	return name
}

// within reports whether name is dir or below it.
func within(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// shared reports whether everyone may write to a directory. On Windows the mode does not
// show that.
func shared(dir string) bool {
	fi, err := os.Stat(dir)
	return err != nil || runtime.GOOS != "windows" && fi.Mode().Perm()&0o002 != 0
}

// isRepository reports whether dir has a .git directory, or a .git file as in a worktree.
func isRepository(dir string) bool {
	fi, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil && (fi.IsDir() || fi.Mode().IsRegular())
}
