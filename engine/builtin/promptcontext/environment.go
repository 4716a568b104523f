package promptcontext

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// environment returns a few facts, one per line. They change only with the day and the
// branch, so that the prompt stays cacheable.
func (l *looker) environment(at project) string {
	lines := []string{
		fmt.Sprintf("- Workspace: %q", l.cwd),
		"- System: " + runtime.GOOS + "/" + runtime.GOARCH,
		"- Date: " + time.Now().Format(time.DateOnly),
	}
	if at.repo != "" {
		lines = append(lines, "- Git: "+l.branch(at.repo))
	}
	return strings.Join(lines, "\n")
}

// branch describes the HEAD of git. Unusual contents are not shown, because anyone could
// write a prompt into that file.
func (l *looker) branch(repo string) string {
	head, err := l.files.read(l.gitDir(repo), "HEAD")
	if err != nil {
		return "a repository"
	}
	text := strings.TrimRightFunc(head.text, unicode.IsSpace)
	if name, ok := strings.CutPrefix(text, "ref: refs/heads/"); ok && isBranch(name) {
		return "branch " + name
	}
	if hash, err := hex.DecodeString(text); err == nil && len(hash) >= 20 && len(hash) <= 32 {
		return "no branch, commit " + text[:12]
	}
	return "a repository"
}

// isBranch reports whether a branch name is safe to show: letters, digits and a few marks
// between slashes, and no part that starts with a dot.
func isBranch(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.ContainsFunc(part, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_@+#.-", r) || r == utf8.RuneError
		}) {
			return false
		}
	}
	return len(name) <= 200
}

// gitDir returns git's directory. In a worktree or a submodule, the .git file names it.
func (l *looker) gitDir(repo string) string {
	dir := filepath.Join(repo, ".git")
	f, err := l.files.read(repo, ".git")
	if err != nil {
		return dir
	}
	there, ok := strings.CutPrefix(strings.TrimRightFunc(f.text, unicode.IsSpace), "gitdir: ")
	switch {
	case !ok, there == "", strings.ContainsAny(there, "\r\n"), strings.HasPrefix(there, "//"), strings.HasPrefix(there, `\\`): // do not follow a path to another machine
		return dir
	case filepath.IsAbs(there):
		return resolved(there)
	}
	return resolved(filepath.Join(repo, there))
}
