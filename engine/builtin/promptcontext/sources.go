package promptcontext

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// collector reads the files of one prompt. No file is in it twice.
type collector struct {
	l     *looker
	ctx   context.Context
	at    project
	home  string // where ~ in an import of the user leads
	seen  map[string]bool
	count int // imports
	tried int // imports, with those that lead to nothing
	other int // mentioned paths that no file of instructions can have
	all   []source

	skipped int // of all
}

// project returns the files of the workspace, the closest one last.
func (l *looker) project(ctx context.Context, at project) []source {
	c := &collector{l: l, ctx: ctx, at: at, seen: map[string]bool{}}
	for _, dir := range slices.Backward(at.dirs) {
		c.directory(dir)
	}
	return limited(c.all, maxAll)
}

// user returns the files of the user.
func (l *looker) user(ctx context.Context) []source {
	c := &collector{l: l, ctx: ctx, home: l.home, seen: map[string]bool{}}
	for _, path := range l.users {
		at := resolved(path) // a link to a directory with settings is usual
		dir := filepath.Dir(at)
		if f, err := l.files.read(dir, filepath.Base(at)); err == nil && usable(f) {
			c.add(&source{InstructionFile: protocol.InstructionFile{Path: at, Origin: protocol.InstructionUser}, dir: dir}, f, dir, 0)
		}
	}
	return limited(c.all, maxUser)
}

// nested returns the files that are about the given paths and not in the conversation yet.
func (l *looker) nested(ctx context.Context, at project, paths []string, has map[string]int64) []source {
	if len(at.dirs) == 0 {
		return nil
	}
	c := &collector{l: l, ctx: ctx, at: at, seen: map[string]bool{}}
	for _, dir := range at.dirs {
		c.directory(dir) // their files are in the prompt, but rules may match a path
	}
	top := len(c.all)
	files := l.inWorkspace(paths)
	for _, path := range files {
		for _, dir := range between(l.cwd, path) {
			c.directory(dir)
		}
	}
	var fresh []source
	for i, s := range c.all {
		_, known := has[strconv.Quote(s.Name)]
		if !known && (i >= top && s.Use == protocol.InstructionAlways || s.about(files)) {
			s.Use = protocol.InstructionAdded
			fresh = append(fresh, s)
		}
	}
	return limited(fresh, maxAll)
}

// about reports whether a rule is about one of the files.
func (s *source) about(files []string) bool {
	if s.Use != protocol.InstructionMatches {
		return false
	}
	globs := compiled(s.Patterns)
	return slices.ContainsFunc(files, func(path string) bool {
		rel, err := filepath.Rel(s.dir, path)
		return err == nil && within(s.dir, path) && matches(globs, filepath.ToSlash(rel))
	})
}

// inWorkspace returns where paths lead, without those that lead out of the workspace.
func (l *looker) inWorkspace(paths []string) (files []string) {
	for _, path := range paths {
		if at := resolved(locate(l.cwd, "", path)); within(l.cwd, at) {
			files = append(files, at)
		}
	}
	return files
}

// directory adds the files of a directory: its instructions, then its rules.
func (c *collector) directory(dir string) {
	if c.seen[dir] || c.full() {
		return
	}
	c.seen[dir] = true
	first := ""
	for _, name := range names {
		switch {
		case first != "":
			c.replaced(dir, name, first)
		case c.file(dir, name):
			first = name
		}
	}
	for _, name := range ruleFiles {
		c.file(dir, name)
	}
	for _, d := range ruleDirs {
		c.rules(dir, d)
	}
}

// full reports whether the limit of files is reached.
func (c *collector) full() bool { return len(c.all)-c.skipped >= maxSources }

// skip adds a file that the model does not get.
func (c *collector) skip(s source, why string) {
	s.Use, s.Problem = protocol.InstructionSkipped, why
	c.skipped++
	c.all = append(c.all, s)
}

// replaced adds a file of instructions that another one of the directory replaces.
func (c *collector) replaced(dir, name, by string) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if f, err := c.l.files.read(filepath.Dir(path), filepath.Base(path)); err == nil && usable(f) && !c.seen[path] {
		c.skip(source{InstructionFile: protocol.InstructionFile{Path: path, Name: c.at.name(path), Origin: protocol.InstructionWorkspace, Bytes: f.is.Size}, dir: dir}, by+" takes its place")
	}
}

// file adds a file that always applies, and reports whether there is one.
func (c *collector) file(dir, name string) bool {
	path := filepath.Join(dir, filepath.FromSlash(name))
	f, err := c.l.files.read(filepath.Dir(path), filepath.Base(path))
	if err != nil || !usable(f) {
		return false
	}
	c.add(&source{InstructionFile: protocol.InstructionFile{Path: path, Origin: protocol.InstructionWorkspace}, dir: dir}, f, c.l.cwd, 0)
	return true
}

// Limits of what one prompt, or one addition to the conversation, reads.
const (
	maxRules   = 64  // of a directory, the first by name
	maxSources = 256 // files of all directories; the rest is left out
	maxTried   = 256 // imports, also of files that do not exist
)

// rules adds the rules of a directory, by name.
func (c *collector) rules(dir string, d ruleDir) {
	in := filepath.Join(dir, filepath.FromSlash(d.path))
	for _, name := range ruleNames(in, d.suffix) {
		if c.full() {
			return
		}
		f, err := c.l.files.read(in, name)
		if err != nil || !usable(f) {
			continue
		}
		r := parseRule(f.text, d.plain)
		s := &source{InstructionFile: protocol.InstructionFile{Path: filepath.Join(in, name), Origin: protocol.InstructionWorkspace, Description: r.description, Patterns: r.globs}, dir: dir}
		switch {
		case r.text == "":
			continue
		case r.always:
		case len(r.globs) > 0:
			s.Use = protocol.InstructionMatches
		case r.description != "":
			s.Use = protocol.InstructionListed
		default:
			continue
		}
		s.head = int64(len(f.text) - len(r.text))
		f.text = r.text
		c.add(s, f, c.l.cwd, 0)
	}
}

// ruleNames returns the first names of the rules of a directory, sorted.
func ruleNames(dir, suffix string) (all []string) {
	at, err := pathresolve.OpenReal(dir)
	if err != nil {
		return nil
	}
	defer at.Close()
	for e, err := range at.Entries() {
		if err != nil {
			break
		}
		if strings.HasSuffix(e.Name(), suffix) {
			all = append(all, e.Name())
		}
		if len(all) == 2*maxRules { // a directory can have more names than fit into memory
			all = firstRules(all)
		}
	}
	return firstRules(all)
}

// firstRules returns the first names, sorted.
func firstRules(all []string) []string {
	slices.Sort(all)
	return all[:min(len(all), maxRules)]
}

// usable reports whether a file is text and not empty.
func usable(f file) bool {
	return strings.TrimSpace(f.text) != "" && !strings.ContainsRune(f.text, 0)
}

// add adds a file, and after it those that it imports from within root. Rules that the model
// does not get yet import nothing.
func (c *collector) add(s *source, f file, root string, depth int) {
	if c.seen[s.Path] {
		return
	}
	c.seen[s.Path] = true
	s.Name, s.Bytes, s.text = c.name(s), f.is.Size, f.text
	if s.Use == "" {
		s.Use = protocol.InstructionAlways
	}
	c.all = append(c.all, *s)
	if depth == maxDepth || s.Use != protocol.InstructionAlways {
		return
	}
	for _, name := range imports(f.text) {
		if isImportable(name) {
			c.imported(s, name, root, depth+1)
		} else {
			c.mentioned(s, name, root)
		}
	}
}

// name returns the name under which the model sees a file.
func (c *collector) name(s *source) string {
	if s.Origin == protocol.InstructionWorkspace {
		return c.at.name(s.Path)
	}
	if rel, err := filepath.Rel(c.l.home, s.Path); c.l.home != "" && err == nil && within(c.l.home, s.Path) {
		return "~/" + filepath.ToSlash(rel)
	}
	return filepath.ToSlash(s.Path)
}

// imported adds an imported file, or why it is not.
func (c *collector) imported(by *source, name, root string, depth int) {
	if c.tried++; c.tried > maxTried {
		return
	}
	at := resolved(locate(filepath.Dir(by.Path), c.home, name))
	if c.seen[at] {
		return
	}
	f, why := c.read(by, at, root)
	if why != "" {
		c.skip(mention(by, at, name), why)
		return
	}
	c.count++
	c.add(&source{InstructionFile: protocol.InstructionFile{Path: at, Origin: by.Origin, ImportedBy: by.Name}, dir: by.dir}, f, root, depth)
}

// mention returns a source for a path that a file names with @. Its name is as written.
func mention(by *source, at, name string) source {
	return source{InstructionFile: protocol.InstructionFile{Path: at, Name: "@" + beginning(name, maxPattern), Origin: by.Origin, ImportedBy: by.Name}, dir: by.dir}
}

// read reads a file to import. It must be below root without leaving it by a link, and the
// session may read it without a question. A workspace imports no file of lashd's state.
func (c *collector) read(by *source, at, root string) (f file, why string) {
	workspace := by.Origin == protocol.InstructionWorkspace
	switch {
	case c.count == maxImports:
		return f, "there are too many imports"
	case !within(root, at) && workspace:
		return f, "it is outside of the workspace"
	case !within(root, at):
		return f, "it is outside of the directory of your file"
	case workspace && (within(c.l.own.of(c.l.state), at) || !c.l.readable(c.ctx, at)):
		return f, "the session may not read it without a question"
	}
	f, err := c.l.files.read(filepath.Dir(at), filepath.Base(at))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "there is no such file"
	case err != nil:
		why = "it cannot be read"
	case !usable(f):
		why = "it has no text"
	}
	return f, why
}

// mentioned adds a file that a text names with @ and that is not imported because of its ending.
// Other words with @ are usual, so a path that leads to no file is none.
func (c *collector) mentioned(by *source, name, root string) {
	if c.other++; c.other > maxTried {
		return
	}
	at := resolved(locate(filepath.Dir(by.Path), c.home, name))
	if !within(root, at) || c.seen[at] {
		return
	}
	if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
		c.skip(mention(by, at, name), "only files that end in "+strings.Join(importable, ", ")+" are imported")
	}
}
