package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// class is the kind of JSON value that a Go type accepts.
type class int

// Classes of Go types. opaque is the zero value, for types that accept anything.
const (
	opaque  class = iota // any value; its contents are not checked
	record               // an object with declared names
	table                // an object with free names
	list                 // an array
	text                 // a string
	integer              // a number that fits
	number               // a number
	boolean              // true or false
)

// wants names each class in error messages.
var wants = map[class]string{
	record: "object", table: "object", list: "array", text: "string",
	integer: "integer", number: "number", boolean: "boolean",
}

// shape is what the walker needs to know about a Go type. It is computed once per type and never
// changed.
type shape struct {
	class  class
	typ    reflect.Type // without pointers
	elem   reflect.Type // of list and table
	fields map[string]field
	names  []string // names of fields, in their order
	needed uint64   // bits of the required fields
	null   bool     // null is a value of the type
	probe  bool     // only encoding/json can decide whether a value is valid
}

// field is what the walker needs to know about a field of a struct.
type field struct {
	typ      reflect.Type
	optional bool   // may be absent, and null means that
	quoted   bool   // `json:",string"`
	depth    int    // of embedding; an outer field hides an inner one
	bit      uint64 // identifies the field in a set of fields
}

// maxFields is the maximum number of fields of a type, because a set of fields is a uint64.
const maxFields = 64

// find returns the field that a key names. It makes no string of a key without escapes.
func (s *shape) find(key word) (field, bool) {
	if key.escaped {
		f, ok := s.fields[key.text()]
		return f, ok
	}
	f, ok := s.fields[string(key.quoted[1:len(key.quoted)-1])]
	return f, ok
}

// missing returns the first required field that is not in seen, or "".
func (s *shape) missing(seen uint64) string {
	for _, name := range s.names {
		if bit := s.fields[name].bit; bit&s.needed&^seen != 0 {
			return name
		}
	}
	return ""
}

// shapes caches shapeOf, from reflect.Type to *shape.
var shapes sync.Map // reflect.Type to *shape

// shapeOf returns the shape of a type. Goroutines may compute it at the same time; the first result
// counts. Types form a finite set, so the cache does not grow without limit.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, newShape(t))
	return s.(*shape)
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonNumber      = reflect.TypeFor[json.Number]()
)

// newShape computes the shape of a type. A json.Unmarshaler accepts any value and a TextUnmarshaler
// any string; only calling them shows whether the value is valid, which probe records.
func newShape(t reflect.Type) *shape {
	s := &shape{typ: t}
	for s.typ.Kind() == reflect.Pointer {
		s.typ, s.null = s.typ.Elem(), true
	}
	switch p := reflect.PointerTo(s.typ); {
	case p.Implements(unmarshaler):
		s.null, s.probe = true, true
	case p.Implements(textUnmarshaler):
		s.class, s.probe = text, true
	case s.typ == jsonNumber:
		s.class = number
	default:
		s.setKind()
	}
	return s
}

// setKind sets the class of a type without decoding methods, and what belongs to it.
func (s *shape) setKind() {
	switch s.typ.Kind() {
	case reflect.Struct:
		s.class = record
		s.fields = make(map[string]field)
		s.addFields(s.typ, 0)
		s.number()
	case reflect.Map:
		s.class, s.null, s.elem = table, true, s.typ.Elem()
	case reflect.Slice:
		s.class, s.null, s.elem = list, true, s.typ.Elem()
		if s.elem.Kind() == reflect.Uint8 {
			s.class, s.probe = text, true // base64
		}
	case reflect.Array:
		s.class, s.elem = list, s.typ.Elem()
	case reflect.String:
		s.class = text
	case reflect.Bool:
		s.class = boolean
	case reflect.Float32, reflect.Float64:
		s.class, s.probe = number, true
	case reflect.Interface:
		s.null, s.probe = true, true
	default:
		s.class = integer
		if !isInteger(s.typ.Kind()) {
			s.class, s.probe = opaque, true
		}
	}
}

// isInteger reports whether k is an integer kind, signed or unsigned.
func isInteger(k reflect.Kind) bool {
	return reflect.Int <= k && k <= reflect.Uintptr
}

// addFields adds the fields of t as encoding/json sees them: an outer field hides an embedded one.
func (s *shape) addFields(t reflect.Type, depth int) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if inner, ok := embedded(f); ok && name == "" {
			s.addFields(inner, depth+1)
			continue
		}
		if f.IsExported() {
			s.addField(name, options, f, depth)
		}
	}
}

// addField adds one field, unless a field with the same name is less deeply embedded.
func (s *shape) addField(name, options string, f reflect.StructField, depth int) {
	if name == "" {
		name = f.Name
	}
	old, taken := s.fields[name]
	if taken && old.depth <= depth {
		return
	}
	if !taken {
		s.names = append(s.names, name)
	}
	s.fields[name] = field{
		typ:      f.Type,
		optional: strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"),
		quoted:   strings.Contains(options, "string"),
		depth:    depth,
	}
}

// number assigns the bits when all fields are known.
func (s *shape) number() {
	if len(s.names) > maxFields {
		panic("strictjson: " + s.typ.String() + " has more than 64 fields")
	}
	for i, name := range s.names {
		f := s.fields[name]
		f.bit = 1 << i
		s.fields[name] = f
		if !f.optional {
			s.needed |= f.bit
		}
	}
}

// embedded returns the struct type that f embeds, or false.
func embedded(f reflect.StructField) (reflect.Type, bool) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, f.Anonymous && t.Kind() == reflect.Struct
}
