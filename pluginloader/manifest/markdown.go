package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"lashd/internal/strictjson"
	"lashd/pluginloader/layout"
)

// markdown reads the skills, commands and agents below a directory of the plugin; "": the plugin itself. Missing directories have
// none.
func (l *loading) markdown(below string) {
	l.skillsAt(path.Join(below, "skills"), true)
	l.commandsAt(path.Join(below, "commands"), true)
	l.agentsAt(path.Join(below, "agents"), true)
}

// skillsAt reads the skills of a directory: its own SKILL.md, or those of its subdirectories.
func (l *loading) skillsAt(dir string, optional bool) {
	if _, err := l.root.Stat(path.Join(dir, "SKILL.md")); err == nil {
		l.prompt(layout.Skill, path.Join(dir, "SKILL.md"))
		return
	}
	for _, name := range l.names(dir, optional) {
		if file := path.Join(dir, name, "SKILL.md"); l.exists(file) {
			l.prompt(layout.Skill, file)
		}
	}
}

// commandsAt reads a command, or the commands of a directory and of its subdirectories.
func (l *loading) commandsAt(at string, optional bool) {
	for _, file := range l.texts(at, optional, MaxDepth) {
		l.prompt(layout.Command, file)
	}
}

// agentsAt reads an agent, or the agents of a directory.
func (l *loading) agentsAt(at string, optional bool) {
	for _, file := range l.texts(at, optional, 1) {
		data, ok := l.once(file, false)
		if !ok {
			continue
		}
		a, unserved, err := layout.ParseAgent(file, data)
		if l.note(file, data, unserved, err) && len(l.plugin.Agents) < layout.MaxFiles {
			l.plugin.Agents = append(l.plugin.Agents, a)
		}
	}
}

// prompt reads a skill or a command.
func (l *loading) prompt(kind layout.Kind, file string) {
	data, ok := l.once(file, false)
	if !ok {
		return
	}
	p, unserved, err := layout.ParsePrompt(kind, file, data)
	list := &l.plugin.Skills
	if kind == layout.Command {
		list = &l.plugin.Commands
	}
	if l.note(file, data, unserved, err) && len(*list) < layout.MaxFiles {
		*list = append(*list, p)
	}
}

// note records what has no effect in a file. A file that cannot be read is left out with a warning: one bad text must not stop the
// hooks of the same plugin.
func (l *loading) note(file string, data []byte, unserved []layout.Unserved, err error) bool {
	if len(data) > MaxFile {
		err = fmt.Errorf("has more than %d bytes", MaxFile)
	}
	if err != nil {
		l.found = append(l.found, Problem{File: file, Message: err.Error() + "; it is left out", Warning: true})
		return false
	}
	for _, u := range unserved {
		l.unserved[u] = append(l.unserved[u], file)
	}
	return true
}

// warnUnserved warns once about each field of Markdown files that has no effect.
func (l *loading) warnUnserved() {
	for _, u := range slices.SortedFunc(maps.Keys(l.unserved), func(a, b layout.Unserved) int { return strings.Compare(a.Field, b.Field) }) {
		files, more := l.unserved[u], ""
		if n := len(files) - 1; n > 0 {
			more = fmt.Sprintf(" (also in %d more)", n)
		}
		l.found = append(l.found, Problem{File: files[0], Message: fmt.Sprintf("%q has no effect%s: %s", u.Field, more, u.Effect), Warning: true})
	}
}

// texts returns the Markdown files of a directory, down to a number of levels, or the path itself if it is a file.
func (l *loading) texts(at string, optional bool, levels int) (files []string) {
	if info, err := l.root.Stat(at); err == nil && info.Mode().IsRegular() {
		return []string{at}
	}
	for _, name := range l.names(at, optional) {
		file := path.Join(at, name)
		info, err := l.root.Stat(file)
		switch {
		case err != nil:
		case info.IsDir() && levels > 1:
			files = append(files, l.texts(file, true, levels-1)...)
		case info.Mode().IsRegular() && strings.HasSuffix(name, ".md") && !strings.EqualFold(name, "README.md"):
			files = append(files, file)
		}
	}
	return files
}

// names returns the sorted names in a directory of the plugin, without those that begin with a dot.
func (l *loading) names(dir string, optional bool) []string {
	f, err := l.root.Open(dir)
	if err != nil {
		if !optional || !errors.Is(err, fs.ErrNotExist) {
			l.fail(dir, "%v", err)
		}
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(4 * layout.MaxFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		l.fail(dir, "%v", err)
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, ".") || l.noLinks && !l.exists(path.Join(dir, name))
	})
}

// exists reports whether the plugin has a file or directory.
func (l *loading) exists(name string) bool {
	if l.noLinks {
		info, err := l.root.Lstat(name)
		return err == nil && info.Mode().Type() != fs.ModeSymlink
	}
	_, err := l.root.Stat(name)
	return err == nil
}

// paths reads a field of other agents that names files or directories with Markdown files. A path that lashd cannot use has a warning.
func (l *loading) paths(file string, data []byte, field string, raw json.RawMessage, open func(string, bool)) {
	if len(raw) == 0 {
		return
	}
	s := &source{file: file, data: data, foreign: true}
	var list []string
	var one string
	switch {
	case json.Unmarshal(raw, &one) == nil:
		list = []string{one}
	case json.Unmarshal(raw, &list) != nil:
		s.warn("/"+field, "has no effect: lashd reads only paths of files here")
	}
	for _, name := range list[:min(len(list), maxReferences)] {
		if at := path.Clean(strings.TrimPrefix(name, "./")); fs.ValidPath(at) && l.exists(at) {
			open(at, true)
			continue
		}
		s.warn("/"+field, "%s is not a file or directory of the plugin; it is left out", strictjson.Quote(name))
	}
	l.found = append(l.found, s.problems()...)
}
