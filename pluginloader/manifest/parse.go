package manifest

import (
	"encoding/json"
	"reflect"
	"slices"
	"unicode/utf8"

	"lashd/internal/strictjson"
)

// Parse reads a plugin.json. Problems contain all mistakes, and warnings about parts without
// effect. With a mistake, the File is nil. Fields whose names start with "_" are ignored.
func Parse(file string, data []byte) (*File, Problems) {
	s := &source{file: file, data: data}
	f := s.manifest()
	if s.failed() {
		return nil, s.problems()
	}
	return f, s.problems()
}

// manifest decodes the source and checks all rules. It returns nil if the source does not decode.
func (s *source) manifest() *File {
	f := new(File)
	if !s.fits() {
		return nil
	}
	if !s.decode(f) {
		s.rulesOfRest(f)
		return nil
	}
	s.rules("", reflect.ValueOf(*f))
	if c := f.Lashd; c != nil {
		s.contributions(c)
	}
	return f
}

// rulesOfRest checks the rules of what can be decoded in a file that has other mistakes, so that all of them are reported at once.
// Rules between fields are left out: a field that cannot be decoded would look as if it was missing.
func (s *source) rulesOfRest(f *File) {
	if !json.Valid(s.data) || !utf8.Valid(s.data) {
		return
	}
	_ = json.Unmarshal(s.data, f) // the mistakes have been reported; what has them stays empty
	known, reported := map[int]bool{}, slices.Clone(s.found)
	for _, l := range reported {
		known[l.offset] = true
	}
	s.rules("", reflect.ValueOf(*f))
	more := slices.DeleteFunc(slices.Clone(s.found[len(reported):]), func(l located) bool { return known[l.offset] })
	s.found = append(reported, more...)
}

// fits reports whether the file is within MaxFile.
func (s *source) fits() bool {
	if len(s.data) > MaxFile {
		s.add(0, false, "the file has more than %d bytes", MaxFile)
		return false
	}
	return true
}

// UnmarshalJSON accepts an object, or the name of a slot.
func (h *Hook) UnmarshalJSON(data []byte) error {
	if slot, ok := strictjson.Text(data); ok {
		*h = Hook{On: Slot(slot)}
		return nil
	}
	type plain Hook
	return strictjson.DecodeAll(data, (*plain)(h), MaxProblems)
}

// isObject reports whether a JSON value is an object.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }
