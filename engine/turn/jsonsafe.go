package turn

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// faithful deep-copies what v refers to and reports whether the copy equals what reading back its JSON would give. It
// reports false for raw values, types with their own encoding and text that is not UTF-8; the caller then uses JSON,
// which takes ten times as long. v must be addressable.
func faithful(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Float32, reflect.Float64:
		return !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0)
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer:
		return v.IsNil() || faithfulPointer(v)
	case reflect.Slice:
		return v.IsNil() || faithfulSlice(v)
	case reflect.Struct:
		return faithfulStruct(v)
	}
	return v.IsZero() // maps and interfaces
}

// faithfulPointer replaces a pointer by one to a copy.
func faithfulPointer(v reflect.Value) bool {
	fresh := reflect.New(v.Type().Elem())
	fresh.Elem().Set(v.Elem())
	v.Set(fresh)
	return faithful(fresh.Elem())
}

// faithfulSlice replaces a slice by a copy. Bytes need no further look.
func faithfulSlice(v reflect.Value) bool {
	fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(fresh, v)
	v.Set(fresh)
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return true
	}
	for i := range fresh.Len() {
		if !faithful(fresh.Index(i)) {
			return false
		}
	}
	return true
}

// faithfulStruct treats each field as its JSON tag says.
func faithfulStruct(v reflect.Value) bool {
	for _, f := range fieldsOf(v.Type()) {
		switch field := v.Field(f.index); {
		case f.hidden, f.opaque && f.omits:
			if !field.IsZero() {
				return false
			}
		case f.absent, f.omits && field.Kind() == reflect.Slice && field.Len() == 0:
			field.SetZero()
		case f.opaque || !faithful(field):
			return false
		}
	}
	return true
}

// structField describes how JSON treats a field of a struct.
type structField struct {
	index  int
	hidden bool // unexported: JSON ignores it, and we cannot clear it
	absent bool // tagged "-"
	omits  bool // tagged omitempty
	opaque bool // it has an encoding of its own
}

// structFields caches fieldsOf: reflect.Type to []structField.
var structFields sync.Map

// fieldsOf returns the fields of a struct type.
func fieldsOf(t reflect.Type) []structField {
	if known, ok := structFields.Load(t); ok {
		return known.([]structField)
	}
	fields := make([]structField, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, structField{
			index: i, hidden: !f.IsExported(), absent: tag == "-" && options == "", omits: strings.Contains(options, "omitempty"),
			opaque: f.Anonymous || strings.Contains(options, "string") || encodesItself(f.Type),
		})
	}
	structFields.Store(t, fields)
	return fields
}

// encodesItself reports whether a type, or what it points to or lists, has its own JSON or text encoding.
func encodesItself(t reflect.Type) bool {
	for {
		p := reflect.PointerTo(t)
		if p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) ||
			p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return true
		}
		if t.Kind() != reflect.Pointer && t.Kind() != reflect.Slice {
			return false
		}
		t = t.Elem()
	}
}
