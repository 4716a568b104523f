package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"lashd/internal/strictjson"
)

// Problem is a mistake in a plugin, or a warning about a part that has no effect.
type Problem struct {
	File    string `json:"file"`             // relative to the plugin's directory
	Line    int    `json:"line,omitempty"`   // from 1; 0: the whole file
	Column  int    `json:"column,omitempty"` // in characters, from 1
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"`
}

// String returns the problem in the form FILE:LINE:COLUMN: MESSAGE, which editors understand.
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

// Problems lists the problems of a plugin in the order of its files. As an error it contains no
// warnings.
type Problems []Problem

// Error returns all problems, one per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// split separates warnings from mistakes.
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

// source is a file that is being read, with the problems found so far. Its methods report problems
// instead of returning errors, so that one run finds all of them.
type source struct {
	file    string
	data    []byte
	foreign bool // in the format of another agent, where ${...} has more meanings
	newer   bool // settings, which may have parts that only newer agents know: they must not switch off the rest of the file
	found   []located
	counts  [2]int // number of mistakes and of warnings
}

// located is a problem at a byte offset.
type located struct {
	offset int
	text   string
	warn   bool
}

// add records a problem at an offset, unless the file already has too many.
func (s *source) add(offset int, warn bool, format string, args ...any) {
	if !s.full(warn) {
		s.found = append(s.found, located{offset, fmt.Sprintf(format, args...), warn})
		s.counts[rank(warn)]++
	}
}

// full reports whether enough problems of a kind were found. Locating each one costs a walk over
// the file, so no more are searched.
func (s *source) full(warn bool) bool { return s.counts[rank(warn)] >= MaxProblems }

// at reports a mistake in the value that a JSON pointer names.
func (s *source) at(pointer, format string, args ...any) {
	if !s.full(false) {
		_, value := strictjson.Find(s.data, pointer)
		s.add(value, false, format, args...)
	}
}

// atKey reports a mistake in the key that a JSON pointer names.
func (s *source) atKey(pointer, format string, args ...any) {
	if !s.full(false) {
		key, _ := strictjson.Find(s.data, pointer)
		s.add(key, false, format, args...)
	}
}

// warn reports a key that has no effect.
func (s *source) warn(pointer, format string, args ...any) {
	if !s.full(true) {
		key, _ := strictjson.Find(s.data, pointer)
		s.add(key, true, format, args...)
	}
}

// failed reports whether there is a mistake.
func (s *source) failed() bool { return s.counts[0] > 0 }

// problems returns the problems in file order, at most MaxProblems. If there are more, mistakes go
// before warnings.
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

// rank orders mistakes before warnings; it also indexes source.counts.
func rank(warn bool) int {
	if warn {
		return 1
	}
	return 0
}

// place returns the line and column of an offset, both from 1.
func place(data []byte, offset int) (line, column int) {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// decode decodes the whole file as one JSON value and reports every mistake. It returns false if
// the file has mistakes.
func (s *source) decode(into any) bool {
	all := mistakes(strictjson.DecodeAll(s.data, into, MaxProblems))
	if s.newer && len(all) > 0 && len(all) < MaxProblems && !slices.ContainsFunc(all, known) {
		return s.decodeKnown(all, into)
	}
	for _, e := range all {
		name := e.Pointer[strings.LastIndexByte(e.Pointer, '/')+1:]
		if e.Reason == "is required" {
			s.add(e.Offset, false, "%q is missing", name)
			continue
		}
		s.add(e.Offset, false, "%s", e.Reason)
	}
	return !s.failed()
}

// known reports whether a mistake is about anything but an unknown field.
func known(e *strictjson.Error) bool { return !strings.HasPrefix(e.Reason, "unknown field ") }

// decodeKnown decodes the file without its unknown fields, and warns about them.
func (s *source) decodeKnown(unknown strictjson.Errors, into any) bool {
	data := bytes.Clone(s.data)
	for _, e := range unknown {
		s.add(e.Offset, true, "%s; it has no effect in lashd", e.Reason)
		blank(data, e.Offset)
	}
	if err := json.Unmarshal(data, into); err != nil {
		s.add(0, false, "is not valid: %v", err)
	}
	return !s.failed()
}

// blank makes the key at an offset one that no field has, not even in another case.
func blank(data []byte, at int) {
	for at++; data[at] != '"'; at++ {
		if data[at] == '\\' {
			data[at] = '~'
			at++
		}
		data[at] = '~'
	}
}
