package tool

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The validator formats values in its errors with %v. These types print objects and arrays as JSON instead of Go maps.
type (
	object map[string]any
	array  []any
)

func (o object) String() string { return asJSON(map[string]any(o)) }
func (a array) String() string  { return asJSON([]any(a)) }

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error() // it was decoded from JSON, so this does not happen
	}
	return string(text)
}

// shown converts a decoded JSON value, in place, to types that print as JSON.
func shown(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = shown(member)
		}
		return object(v)
	case []any:
		for i, item := range v {
			v[i] = shown(item)
		}
		return array(v)
	}
	return v
}

// showConstants applies shown to the constants of a schema and of all schemas inside it. Constants must have the same
// types as the values they are compared with: a plain map never equals an object.
func showConstants(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if s, is := v.Interface().(*jsonschema.Schema); is && s != nil {
			showOwn(s)
			for f, field := range v.Elem().Fields() {
				if f.IsExported() {
					showConstants(field)
				}
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			showConstants(v.Index(i))
		}
	case reflect.Map:
		for _, member := range v.Seq2() {
			showConstants(member)
		}
	}
}

// showOwn applies shown to the constants of one schema.
func showOwn(s *jsonschema.Schema) {
	for i, constant := range s.Enum {
		s.Enum[i] = shown(constant)
	}
	if s.Const != nil {
		*s.Const = shown(*s.Const)
	}
}

// null replaces the validator's texts for null, alone and in a list.
var null = strings.NewReplacer("<invalid reflect.Value>", "null", "<nil>", "null")

// inJSON returns an error of the validator with null in place of Go's words for it.
func inJSON(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(null.Replace(err.Error()))
}
