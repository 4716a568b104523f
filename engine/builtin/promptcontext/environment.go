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

// environment is a few facts, a line each. They change from day to day and with the branch, and no more often.
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

// branch is what git's HEAD says. Anything that is not of git's usual form is not passed on.
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

// isBranch tells whether a name can be shown as it is: letters, digits and a few marks between slashes. No part begins with a
// dot.
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

// gitDir is git's directory. In a worktree or a submodule, a file says where it is.
func (l *looker) gitDir(repo string) string {
	dir := filepath.Join(repo, ".git")
	f, err := l.files.read(repo, ".git")
	if err != nil {
		return dir
	}
	there, ok := strings.CutPrefix(strings.TrimRightFunc(f.text, unicode.IsSpace), "gitdir: ")
	switch {
	case !ok, there == "", strings.ContainsAny(there, "\r\n"), strings.HasPrefix(there, "//"), strings.HasPrefix(there, `\\`): // no file names another machine
		return dir
	case filepath.IsAbs(there):
		return resolved(there)
	}
	return resolved(filepath.Join(repo, there))
}
