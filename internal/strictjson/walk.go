package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// walker compares a value that has passed Check with a Go type, in one pass and without decoding
// it.
//
// A method that finds a mistake returns it, and then pos and path are undefined. If limit allows
// more mistakes, endsWalk keeps the mistake, restores pos and path, and the walk continues.
type walker struct {
	cursor
	probe bool     // also decode each value that only encoding/json can judge
	limit int      // maximum number of mistakes; the last one ends the walk
	kept  []*Error // earlier mistakes
	path  []step   // from the root to the current value
	few   [8]step  // initial memory of path
}

// step is one reference token of a pointer: a key or, if key is empty, an index.
type step struct {
	key   word
	index int
}

// value compares the value at pos with a type. optional says that null means an absent field.
func (w *walker) value(t reflect.Type, optional bool) *Error {
	s := shapeOf(t)
	found := kindOf(w.peek())
	if found == "null" && (s.null || optional) {
		w.skip()
		return nil
	}
	if s.class != opaque && !accepts(s.class, found) {
		return w.errorf("expected %s, got %s", wants[s.class], found)
	}
	switch {
	case w.probe && s.probe:
		return w.try(s)
	case s.class == record:
		return w.record(s)
	case s.class == table:
		return w.table(s)
	case s.class == list:
		return w.list(s)
	case s.class == integer:
		return w.integer(s)
	}
	w.skip()
	return nil
}

// accepts reports whether a class accepts a JSON type. Integers are checked further by integer.
func accepts(c class, found string) bool {
	return wants[c] == found || c == integer && found == "number"
}

// kindOf returns the JSON type of a value by its first byte.
func kindOf(first byte) string {
	switch first {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// endsWalk reports whether a mistake ends the walk. If not, it keeps the mistake and continues after
// the value that starts at pos, with depth tokens of the path.
func (w *walker) endsWalk(err *Error, pos, depth int) bool {
	if err == nil {
		return false
	}
	if len(w.kept)+1 >= w.limit {
		return true
	}
	w.kept = append(w.kept, err)
	w.pos, w.path = pos, w.path[:depth]
	w.skip()
	return false
}

// record compares an object with a struct.
func (w *walker) record(s *shape) *Error {
	seen, start, depth := uint64(0), w.pos, len(w.path)
	for w.enter(); w.more(); {
		w.peek()
		at := w.pos
		key := w.word()
		value := w.pos
		f, ok := s.find(key)
		if !ok {
			if err := w.unknown(s, key, at); w.endsWalk(err, value, depth) {
				return err
			} else if err == nil {
				w.skip()
			}
			continue
		}
		seen |= f.bit
		w.path = append(w.path, step{key: key})
		if err := w.field(f); w.endsWalk(err, value, depth) {
			return err
		}
		w.path = w.path[:depth]
	}
	return w.complete(s, seen, start)
}

// complete reports the required fields that are missing in the object that starts at start. seen
// has the bits of its fields.
func (w *walker) complete(s *shape, seen uint64, start int) *Error {
	for seen&s.needed != s.needed {
		name := s.missing(seen)
		err := &Error{Offset: start, Pointer: w.pointer() + "/" + name, Reason: "is required"}
		if len(w.kept)+1 >= w.limit {
			return err
		}
		w.kept = append(w.kept, err)
		seen |= s.fields[name].bit
	}
	return nil
}

// field compares the value of a field. Quoted numbers are left to encoding/json.
func (w *walker) field(f field) *Error {
	if f.quoted {
		w.skip()
		return nil
	}
	return w.value(f.typ, f.optional)
}

// unknown returns the error for an undeclared name at pos. Names with a leading underscore are
// allowed, unless encoding/json would take one for a declared name in another case.
func (w *walker) unknown(s *shape, as word, pos int) *Error {
	key := as.text()
	near := Nearest(key, s.names)
	if strings.HasPrefix(key, "_") && !strings.EqualFold(near, key) {
		return nil
	}
	w.path = append(w.path, step{key: as})
	err := w.errorf("unknown field %s", Quote(key))
	if near != "" {
		err.Reason += fmt.Sprintf(", did you mean %q?", near)
	}
	err.Offset = pos
	return err
}

// table compares an object with a map.
func (w *walker) table(s *shape) *Error {
	start, depth, before := w.pos, len(w.path), len(w.kept)
	for w.enter(); w.more(); {
		w.path = append(w.path, step{key: w.word()})
		value := w.pos
		if err := w.value(s.elem, false); w.endsWalk(err, value, depth) {
			return err
		}
		w.path = w.path[:depth]
	}
	if !w.probe || len(w.kept) > before {
		return nil
	}
	w.pos = start
	return w.try(s) // a map may have keys that are not strings in Go
}

// list compares an array with a slice or an array, whose length must match.
func (w *walker) list(s *shape) *Error {
	n, depth := 0, len(w.path)
	for w.enter(); w.more(); n++ {
		w.path = append(w.path, step{index: n})
		value := w.pos
		if err := w.value(s.elem, false); w.endsWalk(err, value, depth) {
			return err
		}
		w.path = w.path[:depth]
	}
	if s.typ.Kind() == reflect.Array && n != s.typ.Len() {
		return w.errorf("expected %d elements, got %d", s.typ.Len(), n)
	}
	return nil
}

// integer checks that a number is an integer in the range of its type.
func (w *walker) integer(s *shape) *Error {
	start := w.pos
	word := string(w.skip())
	var err error
	if s.typ.Kind() < reflect.Uint {
		_, err = strconv.ParseInt(word, 10, s.typ.Bits())
	} else {
		_, err = strconv.ParseUint(word, 10, s.typ.Bits())
	}
	if err == nil {
		return nil
	}
	w.pos = start
	if strings.ContainsAny(word, ".eE") {
		return w.errorf("expected integer, got %s", truncate(word))
	}
	return w.errorf("%s is out of range", truncate(word))
}

// try decodes one value with encoding/json and returns its error with the value's place. It leaves
// pos after the value if that succeeds.
func (w *walker) try(s *shape) *Error {
	start := w.pos
	err := json.Unmarshal(w.skip(), reflect.New(s.typ).Interface())
	if err == nil {
		return nil
	}
	w.pos = start
	if inside, ok := errors.AsType[Errors](err); ok {
		return w.adopt(inside)
	}
	return w.errorf("%s", Reason(err))
}

// adopt moves the mistakes that a json.Unmarshaler found in the value at pos to their place in the
// document. It returns the last one.
func (w *walker) adopt(inside Errors) *Error {
	for i, e := range inside {
		e = &Error{Offset: w.pos + e.Offset, Pointer: w.pointer() + e.Pointer, Reason: e.Reason}
		if i == len(inside)-1 || len(w.kept)+1 >= w.limit {
			return e
		}
		w.kept = append(w.kept, e)
	}
	return nil
}

// errorf returns an error at pos.
func (w *walker) errorf(format string, args ...any) *Error {
	return &Error{Offset: w.pos, Pointer: w.pointer(), Reason: fmt.Sprintf(format, args...)}
}

// pointerEscape encodes a reference token of RFC 6901.
var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns the path to the current value as a pointer. Long keys are cut.
func (w *walker) pointer() string {
	var b strings.Builder
	for _, st := range w.path {
		b.WriteByte('/')
		if st.key.quoted != nil {
			b.WriteString(truncate(pointerEscape.Replace(st.key.text())))
		} else {
			b.WriteString(strconv.Itoa(st.index))
		}
	}
	return b.String()
}
