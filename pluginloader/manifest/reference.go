package manifest

import (
	"fmt"
	"io/fs"
	"strings"

	"lashd/internal/strictjson"
)

// maxReferences is how many files of hooks, or of servers, a manifest may name.
const maxReferences = 64

// references follows a field of another agent: a path, a list of paths, or what such a file holds.
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
		s.at("/"+field, "%q is a path, a list of paths, or an object", field)
	}
	l.found = append(l.found, s.problems()...)
}

func (l *loading) reference(s *source, pointer string, raw []byte, open func(string, bool)) {
	name, ok := strictjson.Text(raw)
	if !ok {
		s.at(pointer, "expected the path of a file")
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

// alone is a file in which nothing but one value stands, at its line and its column.
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
