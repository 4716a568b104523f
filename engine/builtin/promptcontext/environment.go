package promptcontext

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// environment is a few facts, a line each. They change from day to day and with the branch, and no more often.
func (i *instance) environment(at project) string {
	lines := []string{
		fmt.Sprintf("- Workspace: %q", i.cwd),
		"- System: " + runtime.GOOS + "/" + runtime.GOARCH,
		"- Date: " + time.Now().Format(time.DateOnly),
	}
	if at.repo != "" {
		lines = append(lines, "- Git: "+i.branch(at.repo))
	}
	return strings.Join(lines, "\n")
}

var (
	branchName = regexp.MustCompile(`^ref: refs/heads/([\pL\pN_@+#-][\pL\pN_@+#.-]*(/[\pL\pN_@+#-][\pL\pN_@+#.-]*)*)\s*$`)
	commitName = regexp.MustCompile(`^([0-9a-f]{12})[0-9a-f]{28,52}\s*$`)
)

// branch is what git's HEAD says. Anything that is not of git's usual form is not passed on.
func (i *instance) branch(repo string) string {
	head, err := i.files.read(i.gitDir(repo), "HEAD")
	if err != nil {
		return "a repository"
	}
	if m := branchName.FindStringSubmatch(head.text); m != nil && len(m[1]) <= 200 {
		return "branch " + m[1]
	}
	if m := commitName.FindStringSubmatch(head.text); m != nil {
		return "no branch, commit " + m[1]
	}
	return "a repository"
}

var pointer = regexp.MustCompile(`^gitdir: ([^\r\n]+)\s*$`)

// gitDir is git's directory. In a worktree or a submodule, a file says where it is.
func (i *instance) gitDir(repo string) string {
	dir := filepath.Join(repo, ".git")
	f, err := i.files.read(repo, ".git")
	if err != nil {
		return dir
	}
	m := pointer.FindStringSubmatch(f.text)
	switch {
	case m == nil, strings.HasPrefix(m[1], "//"), strings.HasPrefix(m[1], `\\`): // no file names another machine
		return dir
	case filepath.IsAbs(m[1]):
		return m[1]
	}
	return filepath.Join(repo, m[1])
}
