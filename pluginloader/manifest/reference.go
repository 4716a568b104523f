package manifest

import (
	"fmt"
	"io/fs"
	"strings"

	"lashd/internal/strictjson"
)

// maxReferences is the number of files of hooks, or of servers, that a manifest may name.
const maxReferences = 64

// references reads a field of other agents: a path, a list of paths, or the contents of such a
// file. open reads a file, inline reads contents in the manifest itself.
func (l *loading) references(file string, data []byte, field string, raw []byte, open func(string, bool), inline func(*source)) {
	if len(raw) == 0 {
		return
	}
	s := &source{file: file, data: data}
	switch raw[0] {
	case '"':
		l.reference(s, "/"+field, raw, open)
	case '[':
		n := 0
		for element := range strictjson.Elements(raw) {
			if n++; n > maxReferences {
				s.at("/"+field, "the list has more than %d files", maxReferences)
				break
			}
			l.reference(s, fmt.Sprint("/", field, "/", n-1), element, open)
		}
	case '{':
		inline(&source{file: file, data: alone(data, "/"+field), foreign: true})
	default:
		s.at("/"+field, "%q must be a path, a list of paths, or an object", field)
	}
	l.found = append(l.found, s.problems()...)
}

// reference reads one file that the manifest names by a path relative to the plugin.
func (l *loading) reference(s *source, pointer string, raw []byte, open func(string, bool)) {
	name, ok := strictjson.Text(raw)
	if !ok {
		s.at(pointer, "must be the path of a file")
		return
	}
	name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "${CLAUDE_PLUGIN_ROOT}/"), "${PLUGIN_ROOT}/"), "./")
	if !fs.ValidPath(name) {
		s.at(pointer, "%s must be a relative path without ..", strictjson.Quote(name))
		return
	}
	if _, err := l.root.Stat(name); err != nil {
		s.at(pointer, "cannot open %s: %v", strictjson.Quote(name), err)
		return
	}
	open(name, false)
}

// alone returns the file with everything but one value blanked out. The value keeps its line and
// column, so problems in it have the right location.
func alone(data []byte, pointer string) []byte {
	_, start := strictjson.Find(data, pointer)
	before := strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, string(data[:start]))
	for _, value := range strictjson.Members(data) {
		if len(value) > 0 && &value[0] == &data[start] {
			return append([]byte(before), value...)
		}
	}
	return data
}
