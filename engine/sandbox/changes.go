package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lashd/engine/authority"
	"lashd/internal/pathresolve"
)

// A sandbox cannot keep a command from making new files that start programs: files that git, editors or shells read later, outside of the
// sandbox. So lashd looks for them after the command.

const (
	// mostDirs limits how many directories of the workspace are searched for new repositories, so that the search takes a few milliseconds.
	mostDirs = 200
	// deepest limits how far below the workspace they are.
	deepest = 3
	// mostChanges limits how many changes are reported.
	mostChanges = 5
	// clockStep is the precision of the times of files.
	clockStep = 10 * time.Millisecond
)

// watched is the state before a command that Changes compares with the state after it. Paths are absolute. Files that existed before, and
// that are no links, need no comparison: the command cannot change them.
type watched struct {
	since     time.Time
	workspace string
	gitDirs   []string          // git directories that the command may write to
	absent    []string          // files that start programs and did not exist
	links     map[string]string // links that lead to such files, by path
	exposed   []string          // such files and directories that existed and that the program can change
}

// watch notes the state before a command that has a grant in its workspace.
func watch(workspace string, g grant) *watched {
	w := &watched{since: time.Now().Add(-clockStep), workspace: workspace, gitDirs: g.write, links: map[string]string{}}
	for _, path := range g.keep {
		if !exists(path) {
			w.absent = append(w.absent, path)
		} else if target, err := os.Readlink(path); err == nil {
			w.links[path] = target
		}
	}
	return w
}

// Changes looks for files that start programs and that the command made, or others while it ran. It restores links that lead to such files, and
// removes the file commondir of a git directory, with which git takes its configuration from elsewhere. It returns a text for the model
// and the person that names all of them; empty if there are none. Call it after the command has ended.
//
// New repositories are found in the first 200 directories of the workspace, down to three levels, without those named node_modules.
func (b *Box) Changes() string {
	if b == nil || b.watched == nil {
		return ""
	}
	return b.watched.changes()
}

// changes is Box.Changes.
func (w *watched) changes() string {
	found := slices.Concat(w.restored(), w.made(), w.altered(), w.inGitDirs(), w.repositories())
	if len(found) == 0 {
		return ""
	}
	if more := len(found) - mostChanges; more > 0 {
		found = append(found[:mostChanges], fmt.Sprintf("%d more", more))
	}
	return "[While the command ran, files appeared that start programs outside of the sandbox: " + strings.Join(found, "; ") +
		". Tell the person about them; they should look at these files before they run git there or open the directory in an editor.]\n"
}

// restored makes links again that led to files that start programs.
func (w *watched) restored() (found []string) {
	for path, target := range w.links {
		if now, err := os.Readlink(path); err == nil && now == target {
			continue
		}
		result := "lashd has restored it"
		if err := w.restore(path, target); err != nil {
			result = fmt.Sprintf("lashd cannot restore it: %v", err)
		}
		found = append(found, fmt.Sprintf("the link %s was replaced (%s)", w.short(path), result))
	}
	slices.Sort(found)
	return found
}

// restore makes one link again. A file in its place stays under another name.
func (w *watched) restore(path, target string) error {
	dir, name, err := w.open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	away := fmt.Sprintf("%s.%d", name, time.Now().UnixNano())
	if err := dir.Rename(name, away); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return dir.Symlink(target, name)
}

// remove removes a file.
func (w *watched) remove(path string) error {
	dir, name, err := w.open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Remove(name)
}

// open opens the writable directory in which a path is. So a link that a command made leads nowhere else. It returns the path relative to the
// directory. The caller closes dir.
func (w *watched) open(path string) (dir *os.Root, name string, err error) {
	base := w.workspace
	for _, git := range w.gitDirs {
		if authority.Inside(path, git) {
			base = git
		}
	}
	if real, err := pathresolve.Existing(base); err != nil || real != base {
		return nil, "", errors.Join(pathresolve.ErrReplaced, err)
	}
	if name, err = filepath.Rel(base, path); err != nil {
		return nil, "", err
	}
	dir, err = os.OpenRoot(base)
	return dir, name, err
}

// made returns files that start programs and did not exist before. They stay, because the task may need them. A new directory of hooks or of settings counts only if it is not empty.
func (w *watched) made() (found []string) {
	for _, path := range w.absent {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if entries, err := os.ReadDir(path); info.IsDir() && err == nil && len(entries) == 0 {
			continue
		}
		if filepath.Base(path) != "config" || runsPrograms(path) != "" {
			found = append(found, w.short(path))
		}
	}
	return found
}

// altered returns the exposed files that were changed or removed. Of a directory it looks at the first files.
func (w *watched) altered() (found []string) {
	for _, path := range w.exposed {
		left, result := mostDirs, ""
		_ = filepath.WalkDir(path, func(at string, _ fs.DirEntry, err error) error {
			switch left--; {
			case errors.Is(err, fs.ErrNotExist) && at == path:
				result = " (removed)"
			case w.isNew(at):
				result = " (changed)"
			}
			if result != "" || left == 0 {
				return fs.SkipAll
			}
			return nil // what is closed to this user starts nothing
		})
		if result != "" {
			found = append(found, w.short(path)+result)
		}
	}
	return found
}

// inGitDirs checks the git directories of the workspace for files that lead git to another configuration.
func (w *watched) inGitDirs() (found []string) {
	for _, dir := range w.gitDirs {
		if path := filepath.Join(dir, "commondir"); exists(path) {
			result := "lashd has removed it"
			if err := w.remove(path); err != nil {
				result = "remove it"
			}
			found = append(found, fmt.Sprintf("%s (%s)", w.short(path), result))
		}
		for _, sub := range submodules(filepath.Join(dir, "modules")) {
			found = append(found, w.repository(sub)...)
		}
		trees, _ := filepath.Glob(filepath.Join(dir, "worktrees", "*")) // as in gitDir
		for _, tree := range trees {
			found = append(found, w.worktree(tree)...)
		}
	}
	return found
}

// worktree checks the directory of a linked worktree in its git directory. git writes ../.. as the shared directory.
func (w *watched) worktree(dir string) (found []string) {
	path := filepath.Join(dir, "commondir")
	if data, err := readSmall(path); w.isNew(path) && (err != nil || strings.TrimSpace(string(data)) != "../..") {
		found = append(found, w.short(path))
	}
	if path := filepath.Join(dir, "config.worktree"); w.isNew(path) && runsPrograms(path) != "" {
		found = append(found, w.short(path))
	}
	return found
}

// place is a directory of the workspace, and how far below the workspace it is.
type place struct {
	dir   string
	depth int
}

// repositories searches the workspace for repositories, nearest first.
func (w *watched) repositories() (found []string) {
	left := []place{{w.workspace, 0}}
	for n := 0; n < len(left) && n < mostDirs; n++ {
		more, changes := w.search(left[n])
		left, found = append(left, more...), append(found, changes...)
	}
	return found
}

// search checks the repositories of one directory, and returns its subdirectories.
func (w *watched) search(at place) (dirs []place, found []string) {
	entries, err := entriesOf(at.dir)
	if err != nil {
		return nil, nil // it has disappeared, or is closed to this user
	}
	for _, e := range entries {
		path := filepath.Join(at.dir, e.Name())
		switch {
		case e.Name() == ".git":
			found = append(found, w.git(path)...)
		case at.depth > 0 && (e.Name() == "HEAD" || e.Name() == "config") && isGitDir(at.dir):
			return nil, w.repository(at.dir)
		case e.IsDir() && e.Name() != "node_modules" && at.depth < deepest:
			dirs = append(dirs, place{path, at.depth + 1})
		}
	}
	return dirs, found
}

// entriesOf lists a directory in no particular order.
func entriesOf(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir + "/.") // with the dot only a directory opens; opening a pipe would block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// git checks a file or directory .git below the workspace.
func (w *watched) git(path string) []string {
	if slices.Contains(w.gitDirs, path) {
		return nil // inGitDirs checks it, and its configuration cannot be changed
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return w.repository(path)
	}
	if at := linked(path); w.isNew(path) && at == "" {
		return []string{w.short(path) + " (it leads git elsewhere)"}
	}
	return nil
}

// repository checks a git directory for new settings and hooks that start programs.
func (w *watched) repository(dir string) (found []string) {
	for _, name := range []string{"config", "config.worktree"} {
		path := filepath.Join(dir, name)
		if !w.isNew(path) {
			continue
		}
		if what := runsPrograms(path); what != "" {
			found = append(found, fmt.Sprintf("%s (%s)", w.short(path), what))
		}
	}
	if path := filepath.Join(dir, "commondir"); w.isNew(path) && filepath.Base(filepath.Dir(dir)) != "worktrees" {
		found = append(found, w.short(path))
	}
	hooks := filepath.Join(dir, "hooks")
	entries, _ := os.ReadDir(hooks) // most repositories have none
	for _, e := range entries {
		if path := filepath.Join(hooks, e.Name()); !strings.HasSuffix(e.Name(), ".sample") && w.isNew(path) {
			return append(found, w.short(path))
		}
	}
	return found
}

// isNew reports whether a file exists and was changed since the command began. It uses the time that programs cannot set.
func (w *watched) isNew(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && changed(info).After(w.since)
}

// short returns a path relative to the workspace, if it is in it.
func (w *watched) short(path string) string {
	if rel, err := filepath.Rel(w.workspace, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
