package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"lashd/internal/strictjson"
)

// Problem is a mistake in a plugin; or, as a warning, something in it that has no effect.
type Problem struct {
	File    string `json:"file"`             // from the plugin's directory
	Line    int    `json:"line,omitempty"`   // from 1; 0: the file as a whole
	Column  int    `json:"column,omitempty"` // in characters, from 1
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"`
}

// String is the problem as editors understand it.
func (p Problem) String() string {
	text := p.File
	if p.Line > 0 {
		text += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	if p.Warning {
		text += ": warning"
	}
	return text + ": " + p.Message
}

// Problems are what is wrong with a plugin, in the order of its files. As an error it has no warnings in it.
type Problems []Problem

// Error returns all of them, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// split takes warnings and mistakes apart.
func (ps Problems) split() (warnings, mistakes Problems) {
	for _, p := range ps {
		if p.Warning {
			warnings = append(warnings, p)
		} else {
			mistakes = append(mistakes, p)
		}
	}
	return warnings, mistakes
}

// source is a file that is being read, with what is wrong in it.
type source struct {
	file    string
	data    []byte
	foreign bool // of another agent, where ${...} means more
	found   []located
	counts  [2]int // of mistakes and of warnings
}

// located is a problem at an offset.
type located struct {
	offset int
	text   string
	warn   bool
}

func (s *source) add(offset int, warn bool, format string, args ...any) {
	if !s.full(warn) {
		s.found = append(s.found, located{offset, fmt.Sprintf(format, args...), warn})
		s.counts[rank(warn)]++
	}
}

// full tells whether enough was found. More is not looked for: the place of each costs a walk over the file.
func (s *source) full(warn bool) bool { return s.counts[rank(warn)] >= MaxProblems }

// at tells a mistake in the value that a pointer names, atKey one in its key.
func (s *source) at(pointer, format string, args ...any) {
	if !s.full(false) {
		_, value := strictjson.Find(s.data, pointer)
		s.add(value, false, format, args...)
	}
}

func (s *source) atKey(pointer, format string, args ...any) {
	if !s.full(false) {
		key, _ := strictjson.Find(s.data, pointer)
		s.add(key, false, format, args...)
	}
}

// warn tells of a key that has no effect.
func (s *source) warn(pointer, format string, args ...any) {
	if !s.full(true) {
		key, _ := strictjson.Find(s.data, pointer)
		s.add(key, true, format, args...)
	}
}

// failed tells whether there is a mistake.
func (s *source) failed() bool { return s.counts[0] > 0 }

// problems are what was found, in the order of the file: the first of them if they are very many, and mistakes before
// warnings then.
func (s *source) problems() Problems {
	all := slices.Clone(s.found)
	if len(all) > MaxProblems {
		slices.SortStableFunc(all, func(a, b located) int { return cmp.Or(rank(a.warn)-rank(b.warn), a.offset-b.offset) })
		all = all[:MaxProblems]
	}
	slices.SortStableFunc(all, func(a, b located) int { return a.offset - b.offset })
	out := make(Problems, len(all))
	for i, l := range all {
		line, column := place(s.data, l.offset)
		out[i] = Problem{File: s.file, Line: line, Column: column, Message: l.text, Warning: l.warn}
	}
	return out
}

func rank(warn bool) int {
	if warn {
		return 1
	}
	return 0
}

// place is the line and the column of an offset.
func place(data []byte, offset int) (line, column int) {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// decode reads the whole file as one value of JSON, and tells every mistake of it.
func (s *source) decode(into any) bool {
	for _, e := range mistakes(strictjson.DecodeAll(s.data, into, MaxProblems)) {
		name := e.Pointer[strings.LastIndexByte(e.Pointer, '/')+1:]
		if e.Reason == "is required" {
			s.add(e.Offset, false, "%q is missing", name)
			continue
		}
		s.add(e.Offset, false, "%s", e.Reason)
	}
	return !s.failed()
}
