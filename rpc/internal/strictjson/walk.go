package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// walker compares a checked value with a Go type in one pass.
type walker struct {
	cursor
	probe bool // also try encoding/json on each value that only it can judge
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

func (w *walker) record(s *shape) *Error {
	seen := uint64(0)
	for w.enter(); w.more(); {
		key := w.word()
		f, ok := s.find(key)
		if !ok {
			if err := w.unknown(s, key); err != nil {
				return err
			}
			w.skip()
			continue
		}
		seen |= f.bit
		w.path = append(w.path, step{key: key})
		if err := w.field(f); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	if seen&s.needed == s.needed {
		return nil
	}
	err := w.errorf("is required")
	err.Pointer += "/" + s.missing(seen)
	return err
}

func (w *walker) field(f field) *Error {
	if f.quoted {
		w.skip()
		return nil
	}
	return w.value(f.typ, f.optional)
}

// unknown lets names with an underscore pass, but not one that encoding/json would take for a declared name.
func (w *walker) unknown(s *shape, as word) *Error {
	key := as.text()
	near := Nearest(key, s.names)
	if strings.HasPrefix(key, "_") && !strings.EqualFold(near, key) {
		return nil
	}
	w.path = append(w.path, step{key: as})
	if near == "" {
		return w.errorf("unknown field %s", Quote(key))
	}
	return w.errorf("unknown field %s, did you mean %q?", Quote(key), near)
}

func (w *walker) table(s *shape) *Error {
	start := w.pos
	for w.enter(); w.more(); {
		w.path = append(w.path, step{key: w.word()})
		if err := w.value(s.elem, false); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	if !w.probe {
		return nil
	}
	w.pos = start
	return w.try(s) // keys which are not strings in Go
}

func (w *walker) list(s *shape) *Error {
	n := 0
	for w.enter(); w.more(); n++ {
		w.path = append(w.path, step{index: n})
		if err := w.value(s.elem, false); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
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
	return w.errorf("%s", reason(err))
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
