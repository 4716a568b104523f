package starlark

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// errDeep and errLong mean that a value cannot be written as text.
var (
	errDeep = fmt.Errorf("it is nested more than %d levels deep", maxLevels)
	errLong = errors.New("its text is too long")
)

// maxNodes bounds the containers in a text or in JSON, so that writing takes less than a second.
const maxNodes = 1 << 20

// writer writes values as Starlark does, up to a limit. The library's own code has no limit, and takes quadratic time
// for nested values. With count, it only counts bytes.
type writer struct {
	out   strings.Builder
	n     int
	limit int
	count bool
	nodes int // containers written
	path  []any
}

// written returns a value as str does; a string is not quoted.
//
// The error is errLong or errDeep; the text up to that point is returned with it, so that print can show the beginning.
func written(v starlark.Value, limit int) (string, error) {
	if s, ok := v.(starlark.String); ok && len(s) <= limit {
		return string(s), nil
	}
	return quoted(v, limit)
}

// quoted returns a value as repr does.
func quoted(v starlark.Value, limit int) (string, error) {
	w := &writer{limit: limit}
	err := w.value(v)
	return w.out.String(), err
}

// textSize returns the size of the text of a value.
func textSize(v starlark.Value, limit int) (int, error) {
	w := &writer{limit: limit, count: true}
	err := w.value(v)
	return w.n, err
}

// text writes a piece. All output goes through it, so it also enforces the limit.
func (w *writer) text(s string) error {
	if w.n += len(s); w.n > w.limit {
		return errLong
	}
	if !w.count {
		w.out.WriteString(s)
	}
	return nil
}

// value writes a value, a string in quotes.
// The forms are those of Starlark where it has one, so that a model can paste what it reads into its next cell.
func (w *writer) value(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.String:
		if w.n+len(v) > w.limit {
			return errLong
		}
		if w.count {
			return w.text(string(v))
		}
		return w.text(syntax.Quote(string(v), false))
	case *starlark.List:
		return w.nested(v, "[", "]", func() error { return w.elements(v) })
	case starlark.Tuple:
		end := ")"
		if len(v) == 1 {
			end = ",)"
		}
		return w.nested(v, "(", end, func() error { return w.elements(v) })
	case *starlark.Set:
		return w.nested(v, "set([", "])", func() error { return w.elements(v) })
	case *starlark.Dict:
		return w.nested(v, "{", "}", func() error { return w.entries(v) })
	case *starlarkstruct.Struct:
		return w.nested(v, "struct(", ")", func() error { return w.fields(v) })
	case *result:
		return w.nested(v, "result(", ")", func() error { return w.result(v) })
	}
	return w.text(v.String())
}

// nested writes a value that contains others. A value inside itself is written as dots.
//
// Only values on the path from the outermost one are compared, because only they can make a cycle.
func (w *writer) nested(v starlark.Value, begin, end string, body func() error) error {
	key := identity(v)
	w.nodes++
	switch {
	case len(w.path) >= maxLevels:
		return errDeep
	case w.nodes > maxNodes:
		return errLong
	case key != nil && slices.Contains(w.path, key):
		return w.text(begin + "..." + end)
	}
	if err := w.text(begin); err != nil {
		return err
	}
	w.path = append(w.path, key)
	err := body()
	w.path = w.path[:len(w.path)-1]
	if err != nil {
		return err
	}
	return w.text(end)
}

func (w *writer) elements(v starlark.Iterable) error {
	first := true
	for x := range starlark.Elements(v) {
		if err := w.separated(&first, x); err != nil {
			return err
		}
	}
	return nil
}

// separated writes a value after a comma, unless it is the first one.
func (w *writer) separated(first *bool, v starlark.Value) error {
	if !*first {
		if err := w.text(", "); err != nil {
			return err
		}
	}
	*first = false
	return w.value(v)
}

func (w *writer) entries(d *starlark.Dict) error {
	first := true
	for k, v := range d.Entries() {
		if err := w.separated(&first, k); err != nil {
			return err
		}
		if err := w.text(": "); err != nil {
			return err
		}
		if err := w.value(v); err != nil {
			return err
		}
	}
	return nil
}

// The names of fields are sorted by the library, so two equal structs have the same text.
func (w *writer) fields(s *starlarkstruct.Struct) error {
	for i, name := range s.AttrNames() {
		prefix := ", "
		if i == 0 {
			prefix = ""
		}
		if err := w.text(prefix + name + " = "); err != nil {
			return err
		}
		v, err := s.Attr(name)
		if err != nil {
			return err
		}
		if err := w.value(v); err != nil {
			return err
		}
	}
	return nil
}

// The text of a result is shown only if it differs from the value, which would otherwise be written twice.
func (w *writer) result(r *result) error {
	name := "value"
	if !r.ok {
		name = "error"
	}
	if err := w.text(fmt.Sprintf("ok = %v, %s = ", r.ok, name)); err != nil {
		return err
	}
	if err := w.value(r.value); err != nil || !r.says() {
		return err
	}
	if err := w.text(", text = "); err != nil {
		return err
	}
	return w.value(r.text)
}
