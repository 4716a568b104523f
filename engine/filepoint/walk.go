package filepoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"lashd/internal/glob"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	maxDepth  = 100
	maxIgnore = 256 << 10 // bytes of a .gitignore
)

// Files are what stands at the paths of a workspace.
type Files map[string]persistence.WorkspaceFile

// TooManyError means that a workspace has more files than are looked at.
type TooManyError struct{ Limit int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the workspace has more than %d files that git would not ignore", e.Limit)
}

// ignoring is a .gitignore, in the directory that it lies in.
type ignoring struct {
	dir   string // with a slash at its end; empty: the workspace
	rules glob.Ignore
}

// walker goes through a workspace.
type walker struct {
	*Workspace
	limit int
	found Files
	rules []ignoring // of the directories above where it is
}

// Walk looks at all files of the workspace that git would not ignore, without reading them. It never goes into .git.
func (w *Workspace) Walk(ctx context.Context, limit int) (Files, error) {
	k := &walker{Workspace: w, limit: limit, found: Files{}}
	if err := k.below(ctx, w.root, "", 0); err != nil {
		return nil, err
	}
	return k.found, nil
}

func (k *walker) below(ctx context.Context, dir *os.Root, at string, depth int) error {
	names, err := namesIn(dir, k.limit)
	if err != nil {
		return err
	}
	if slices.Contains(names, ".gitignore") {
		above := k.rules
		defer func() { k.rules = above }()
		k.rules = append(slices.Clip(above), ignoring{at, k.ignores(dir)})
	}
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := k.entry(ctx, dir, at, name, depth); err != nil {
			return err
		}
	}
	return nil
}

func namesIn(dir *os.Root, limit int) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return names, nil
}

func (k *walker) entry(ctx context.Context, dir *os.Root, at, name string, depth int) error {
	if name == ".git" || strings.HasPrefix(name, tempPrefix) {
		return nil
	}
	fi, err := dir.Lstat(name)
	if err != nil || k.ours(fi) || k.ignored(at+name, fi.IsDir()) {
		return nil // gone meanwhile, or not to be looked at
	}
	f := k.describe(dir, at+name, fi)
	if f.Kind == protocol.FileUnknown {
		return nil // a socket, a device
	}
	if len(k.found) == k.limit {
		return &TooManyError{k.limit}
	}
	k.found[f.Path] = *f
	if f.Kind != protocol.FileDirectory || depth == maxDepth {
		return nil
	}
	sub, err := k.enter(dir, name)
	if err != nil {
		return nil // unreadable, or replaced meanwhile
	}
	defer sub.Close()
	if err := k.below(ctx, sub, at+name+"/", depth+1); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// ignores reads the .gitignore of a directory. One that cannot be read ignores nothing.
func (k *walker) ignores(dir *os.Root) glob.Ignore {
	fi, err := dir.Lstat(".gitignore")
	if err != nil || !fi.Mode().IsRegular() || k.ours(fi) {
		return nil
	}
	f, err := dir.Open(".gitignore")
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	if err != nil {
		return nil
	}
	return glob.ParseIgnore(string(text))
}

// ignored tells what the nearest .gitignore says that says something.
func (k *walker) ignored(file string, dir bool) bool {
	for _, ig := range slices.Backward(k.rules) {
		if ignored, said := ig.rules.Verdict(strings.TrimPrefix(file, ig.dir), dir); said {
			return ignored
		}
	}
	return false
}

// IsIgnoreFile tells whether a file says what git ignores.
func IsIgnoreFile(file string) bool { return path.Base(file) == ".gitignore" }
