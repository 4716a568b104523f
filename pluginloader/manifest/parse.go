package manifest

import (
	"encoding/json"
	"reflect"

	"lashd/internal/strictjson"
)

// Parse reads a plugin.json. Problems tell all that is wrong with it, and what has no effect; if it has a mistake, there is
// no File. Names of fields that begin with "_" are nobody's, and are left alone.
func Parse(file string, data []byte) (*File, Problems) {
	s := &source{file: file, data: data}
	f := s.manifest()
	if s.failed() {
		return nil, s.problems()
	}
	return f, s.problems()
}

func (s *source) manifest() *File {
	f := new(File)
	if !s.fits() || !s.decode(f) {
		return nil
	}
	s.rules("", reflect.ValueOf(*f))
	if c := f.Lashd; c != nil {
		s.contributions(c)
	}
	return f
}

// fits tells whether the file is not too large.
func (s *source) fits() bool {
	if len(s.data) > MaxFile {
		s.add(0, false, "the file has more than %d bytes", MaxFile)
		return false
	}
	return true
}

// UnmarshalJSON takes the name of a slot, or an object.
func (h *Hook) UnmarshalJSON(data []byte) error {
	if slot, ok := strictjson.Text(data); ok {
		*h = Hook{On: Slot(slot)}
		return nil
	}
	type plain Hook
	return strictjson.DecodeAll(data, (*plain)(h), MaxProblems)
}

// isObject tells whether JSON is an object.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }
