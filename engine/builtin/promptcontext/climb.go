package promptcontext

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"lashd/internal/pathresolve"
)

// project is the directories whose files tell about a workspace.
type project struct {
	dirs []string // from the workspace up to the root of its repository; without one, the workspace only
	repo string   // that root; empty: there is none
}

// location is where a path leads to, for as long as that is so: to look again takes two system calls, not one for each of
// its names.
type location struct {
	real string
	at   os.FileInfo
}

// of is the path without symbolic links, as far as that can be known.
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

// climb looks for the repository around cwd. It does not look above a directory that everybody may write to: what lies
// there may be anybody's. A workspace among lashd's own files has nothing to tell. Both paths have no symbolic links.
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

// resolved is a path without symbolic links, as far as that can be known.
func resolved(name string) string {
	if real, err := pathresolve.Existing(name); err == nil {
		return real
	}
	return name
}

func within(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// shared tells whether everybody may write to a directory. Windows does not say it in the mode.
func shared(dir string) bool {
	fi, err := os.Stat(dir)
	return err != nil || runtime.GOOS != "windows" && fi.Mode().Perm()&0o002 != 0
}

// isRepository tells whether git's own directory, or the file that stands for it, is in dir.
func isRepository(dir string) bool {
	fi, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil && (fi.IsDir() || fi.Mode().IsRegular())
}
