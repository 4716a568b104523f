package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// walker compares a checked value with a Go type in one pass.
type walker struct {
	cursor
	probe bool     // also try encoding/json on each value that only it can judge
	limit int      // of mistakes; the last one ends the walk
	kept  []*Error // mistakes that did not
	path  []step
	few   [8]step // room for path
}

// step is one reference token of a pointer: a key, or an index if key is empty.
type step struct {
	key   word
	index int
}

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

func accepts(c class, found string) bool {
	return wants[c] == found || c == integer && found == "number"
}

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

// over tells whether a mistake ends the walk. If not, it is kept, and the walk goes on behind the value that starts at pos.
func (w *walker) over(err *Error, pos, depth int) bool {
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

func (w *walker) record(s *shape) *Error {
	seen, start, depth := uint64(0), w.pos, len(w.path)
	for w.enter(); w.more(); {
		w.peek()
		at := w.pos
		key := w.word()
		value := w.pos
		f, ok := s.find(key)
		if !ok {
			if err := w.unknown(s, key, at); w.over(err, value, depth) {
				return err
			} else if err == nil {
				w.skip()
			}
			continue
		}
		seen |= f.bit
		w.path = append(w.path, step{key: key})
		if err := w.field(f); w.over(err, value, depth) {
			return err
		}
		w.path = w.path[:depth]
	}
	return w.complete(s, seen, start)
}

// complete finds what is missing of a record that starts at pos.
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

func (w *walker) field(f field) *Error {
	if f.quoted {
		w.skip()
		return nil
	}
	return w.value(f.typ, f.optional)
}

// unknown lets names with an underscore pass, but not one that encoding/json would take for a declared name. The name
// starts at pos.
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

func (w *walker) table(s *shape) *Error {
	start, depth, before := w.pos, len(w.path), len(w.kept)
	for w.enter(); w.more(); {
		w.path = append(w.path, step{key: w.word()})
		value := w.pos
		if err := w.value(s.elem, false); w.over(err, value, depth) {
			return err
		}
		w.path = w.path[:depth]
	}
	if !w.probe || len(w.kept) > before {
		return nil
	}
	w.pos = start
	return w.try(s) // keys which are not strings in Go
}

func (w *walker) list(s *shape) *Error {
	n, depth := 0, len(w.path)
	for w.enter(); w.more(); n++ {
		w.path = append(w.path, step{index: n})
		value := w.pos
		if err := w.value(s.elem, false); w.over(err, value, depth) {
			return err
		}
		w.path = w.path[:depth]
	}
	if s.typ.Kind() == reflect.Array && n != s.typ.Len() {
		return w.errorf("expected %d elements, got %d", s.typ.Len(), n)
	}
	return nil
}

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
		return w.errorf("expected integer, got %s", cut(word))
	}
	return w.errorf("%s is out of range", cut(word))
}

// try decodes one value on its own.
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

// adopt makes mistakes that a json.Unmarshaler found in the value at pos its own. The last one is returned.
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

func (w *walker) errorf(format string, args ...any) *Error {
	return &Error{Offset: w.pos, Pointer: w.pointer(), Reason: fmt.Sprintf(format, args...)}
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func (w *walker) pointer() string {
	var b strings.Builder
	for _, st := range w.path {
		b.WriteByte('/')
		if st.key.quoted != nil {
			b.WriteString(cut(pointerEscape.Replace(st.key.text())))
		} else {
			b.WriteString(strconv.Itoa(st.index))
		}
	}
	return b.String()
}
