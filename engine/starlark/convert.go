package starlark

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	starlarkjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// Errors of values that have no JSON form.
var (
	errNotUTF8 = errors.New("a string is not valid UTF-8")
	errTooLong = errors.New("it is too large")
)

// jsonWriter writes values as JSON. It exists because the library's own encoder has no limits: a list that contains another
// one twice, forty levels deep, is small in memory and a terabyte as JSON. Integers are exact, dicts keep their order.
type jsonWriter struct {
	out   []byte
	limit int
	level int
	nodes int // containers written
}

// toJSON returns a value as JSON of at most limit bytes. Tuples and sets become arrays, structs objects.
func toJSON(v starlark.Value, limit int) (json.RawMessage, error) {
	w := &jsonWriter{limit: limit}
	if err := w.value(v); err != nil {
		if errors.Is(err, errTooLong) {
			err = fmt.Errorf("the value has more than %s or %d lists and dicts as JSON", bytesText(limit), maxNodes)
		}
		return nil, err
	}
	return w.out, nil
}

// The limit is checked before each value and for each text without its escapes, so out can become somewhat longer.
func (w *jsonWriter) value(v starlark.Value) error {
	if len(w.out) > w.limit {
		return errTooLong
	}
	switch v := v.(type) {
	case starlark.NoneType:
		w.out = append(w.out, "null"...)
	case starlark.Bool:
		w.out = append(w.out, map[starlark.Bool]string{true: "true", false: "false"}[v]...)
	case starlark.Int:
		w.out = append(w.out, v.String()...)
	case starlark.Float:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("the number %v has no JSON form", v)
		}
		w.out = append(w.out, v.String()...)
	case starlark.String:
		return w.text(string(v))
	case starlark.Bytes:
		return errors.New("bytes have no JSON form; convert them to a string with str")
	default:
		return w.compound(v)
	}
	return nil
}

// Invalid UTF-8 is an error, because json.Marshal would replace it without a message, and the tool would get another path or text.
func (w *jsonWriter) text(s string) error {
	switch {
	case !utf8.ValidString(s):
		return errNotUTF8
	case len(w.out)+len(s) > w.limit:
		return errTooLong
	}
	data, err := json.Marshal(s)
	w.out = append(w.out, data...)
	return err
}

// A value that contains itself ends at maxLevels; a set of known values would cost more for every ordinary one. Values that
// are shared are written once for each occurrence, and only maxNodes bounds how many there are.
func (w *jsonWriter) compound(v starlark.Value) error {
	if w.level++; w.level > maxLevels {
		return errDeep
	}
	defer func() { w.level-- }()
	if w.nodes++; w.nodes > maxNodes {
		return errTooLong
	}
	switch v := v.(type) {
	case *starlark.Dict:
		return w.dict(v)
	case *starlarkstruct.Struct:
		return w.fields(v)
	case *result:
		return w.fields(v)
	case starlark.Iterable:
		return w.array(v)
	}
	return fmt.Errorf("a %s has no JSON form", v.Type())
}

// It takes anything that can be iterated, such as a range or a set. Dicts have a form of their own and do not arrive here.
func (w *jsonWriter) array(v starlark.Iterable) error {
	w.out = append(w.out, '[')
	first := true
	for x := range starlark.Elements(v) {
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		if err := w.value(x); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

// Keys of other types than strings are an error instead of being converted: 1 and "1" could be two keys of one dict.
func (w *jsonWriter) dict(d *starlark.Dict) error {
	w.out = append(w.out, '{')
	first := true
	for k, v := range d.Entries() {
		key, ok := k.(starlark.String)
		if !ok {
			return fmt.Errorf("a dict has a key of type %s, and JSON has only strings", k.Type())
		}
		if err := w.member(&first, string(key), v); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// member writes a member of an object after a comma, unless it is the first one.
func (w *jsonWriter) member(first *bool, key string, v starlark.Value) error {
	if !*first {
		w.out = append(w.out, ',')
	}
	*first = false
	if err := w.text(key); err != nil {
		return err
	}
	w.out = append(w.out, ':')
	return w.value(v)
}

// fields writes a struct or a result. A result has either a value or an error, and its text if the value is not the text.
func (w *jsonWriter) fields(s starlark.HasAttrs) error {
	w.out = append(w.out, '{')
	first := true
	names := s.AttrNames()
	if r, ok := s.(*result); ok {
		names = map[bool][]string{true: {"ok", "value"}, false: {"ok", "error"}}[r.ok]
		if r.says() {
			names = append(names, "text")
		}
	}
	for _, name := range names {
		v, err := s.Attr(name)
		if err != nil {
			return err
		}
		if err := w.member(&first, name, v); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// fromJSON returns the value of a JSON text. Numbers without a fraction become integers.
//
// The library decodes recursively, so the nesting is checked first. Text that is not UTF-8 is rejected here, at the
// border, so that a string of a cell is invalid only if the cell has cut it.
func (in *Interpreter) fromJSON(s string) (starlark.Value, error) {
	if levels(s) > maxLevels {
		return nil, errDeep
	}
	if err := in.run.meter.need(len(s)); err != nil {
		return nil, err
	}
	if !utf8.ValidString(s) {
		return nil, errNotUTF8
	}
	decode := starlarkjson.Module.Members["decode"].(*starlark.Builtin)
	return decode.CallInternal(in.run.thread, starlark.Tuple{starlark.String(s)}, nil)
}

// levels returns how deeply a JSON text is nested.
//
// It needs no valid JSON: for any other text, the decoder reports the error.
func levels(s string) int {
	deepest, level, quoted := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			level++
			deepest = max(deepest, level)
		case c == ']' || c == '}':
			level--
		}
	}
	return deepest
}
