package oracles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// extensions are members that the libraries do not know: reasoning_content of other servers of Chat Completions, and members that the
// vendors' own servers send.
var extensions = []string{"reasoning_content", "obfuscation", "store", "details"}

// misfits decodes JSON into a type of a library that its vendor generates, and lists each member that the type does not have, that has
// another type, or that is required and missing. to points to a value of that type.
func misfits(data []byte, to any) []string {
	if err := json.Unmarshal(data, to); err != nil {
		return []string{err.Error()}
	}
	return walk("", reflect.ValueOf(to).Elem())
}

// walk lists the misfits of a decoded value. path is where it stands.
func walk(path string, v reflect.Value) []string {
	var found []string
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			found = append(found, walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))...)
		}
	case reflect.Struct:
		if variant := v.MethodByName("AsAny"); variant.IsValid() {
			only := variant.Call(nil)[0]
			if only.IsNil() {
				return []string{path + " is of an unknown kind"}
			}
			return walk(path, only.Elem())
		}
		if news := v.FieldByName("JSON"); news.IsValid() {
			return members(path, v, news)
		}
	}
	return found
}

// field is what a library records about a member of an object.
type field interface {
	Valid() bool
	Raw() string
}

// members lists the misfits of an object. news is the struct with what the library recorded about each member.
func members(path string, v, news reflect.Value) []string {
	var found []string
	if extra := news.FieldByName("ExtraFields"); extra.IsValid() {
		for _, name := range extra.MapKeys() {
			if !slices.Contains(extensions, name.String()) {
				found = append(found, path+"."+name.String()+" is unknown")
			}
		}
	}
	for i := range v.NumField() {
		about := news.FieldByName(v.Type().Field(i).Name)
		if !about.IsValid() {
			continue
		}
		tag := v.Type().Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		name = path + "." + name
		switch read := about.Interface().(field); {
		case read.Raw() == "" && (tag.Get("api") == "required" || tag.Get("default") != ""):
			found = append(found, name+" is missing")
		case read.Raw() == "" || read.Raw() == "null":
		case !read.Valid() || !spelled(v.Field(i).Kind(), read.Raw()):
			found = append(found, name+" has another type: "+read.Raw())
		case tag.Get("default") != "" && tag.Get("default") != v.Field(i).String():
			found = append(found, name+" is "+read.Raw())
		default:
			found = append(found, walk(name, v.Field(i))...)
		}
	}
	return found
}

// spelled reports whether JSON is a value of this kind. The libraries also accept a number in a string, and the like.
func spelled(kind reflect.Kind, raw string) bool {
	switch kind {
	case reflect.String:
		return raw[0] == '"'
	case reflect.Bool:
		return raw[0] == 't' || raw[0] == 'f'
	case reflect.Int64, reflect.Float64:
		return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
	}
	return true
}

// exactly is misfits for the types of Google's library, which are plain structs. to points to one whose UnmarshalJSON is hidden.
func exactly(data []byte, to any) []string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return []string{err.Error()}
	}
	return nil
}
