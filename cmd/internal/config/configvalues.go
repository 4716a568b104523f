package config

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lashd/engine/hostrule"
)

// badValue is a setting with an invalid value. The message begins with the path of
// the key.
type badValue struct {
	key     []string // path of the key
	nth     int      // index of the table, if the key is in one of several tables of the same name
	message string
}

// badTypes finds values of the wrong type and empty strings. said is the decoded
// table, and above is its path. Keys that the table does not have are left to the
// strict decoder.
// It runs before the strict decoder, which would stop at the first wrong type.
func badTypes(table reflect.Type, said map[string]any, above []string) (bad []badValue) {
	for field := range table.Fields() {
		name := field.Tag.Get("toml")
		value, ok := said[name]
		if !ok {
			continue
		}
		t, key := field.Type, append(slices.Clone(above), name)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		inner, isTable := value.(map[string]any)
		tables, isList := value.([]any)
		switch {
		case value == "":
			bad = append(bad, badValue{key, 0, strings.Join(key, ".") + " is empty; remove it to use the default"})
		case t.Kind() == reflect.Struct && t != reflect.TypeFor[duration]() && isTable:
			bad = append(bad, badTypes(t, inner, key)...)
		case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct && isTable:
			bad = append(bad, badTables(t.Elem(), inner, key)...)
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && isList && !slices.ContainsFunc(tables, isNoTable):
			for nth, inner := range tables {
				for _, b := range badTypes(t.Elem(), inner.(map[string]any), key) {
					bad = append(bad, badValue{b.key, nth, b.message})
				}
			}
		case !fits(t, value):
			bad = append(bad, badValue{key, 0, fmt.Sprintf("%s is %s; it must be %s", strings.Join(key, "."), typeName(value), wanted(t, name))})
		}
	}
	return bad
}

// badTables does the same as badTypes for each table of a map, such as providers.
func badTables(table reflect.Type, said map[string]any, above []string) (bad []badValue) {
	for _, name := range slices.Sorted(maps.Keys(said)) {
		key := append(slices.Clone(above), name)
		if inner, ok := said[name].(map[string]any); ok {
			bad = append(bad, badTypes(table, inner, key)...)
			continue
		}
		bad = append(bad, badValue{key, 0, fmt.Sprintf("%s is %s; it must be a table", strings.Join(key, "."), typeName(said[name]))})
	}
	return bad
}

// isNoTable reports whether a decoded value is not a table.
func isNoTable(v any) bool {
	_, ok := v.(map[string]any)
	return !ok
}

// fits reports whether a decoded value has the type of a setting. It does not
// handle the tables of config itself. An integer also fits where a float is
// expected.
func fits(t reflect.Type, value any) bool {
	switch v := value.(type) {
	case string:
		return t.Kind() == reflect.String || t == reflect.TypeFor[duration]()
	case bool:
		return t.Kind() == reflect.Bool
	case int64:
		return t.Kind() == reflect.Int64 || t.Kind() == reflect.Float64
	case float64:
		return t.Kind() == reflect.Float64
	case map[string]any:
		return t.Kind() == reflect.Map && (t.Elem().Kind() == reflect.Interface || allFit(t.Elem(), maps.Values(v)))
	case []any:
		return t.Kind() == reflect.Slice && allFit(t.Elem(), slices.Values(v))
	}
	return false
}

// allFit reports whether all values fit the type t.
func allFit(t reflect.Type, values iter.Seq[any]) bool {
	for v := range values {
		if !fits(t, v) {
			return false
		}
	}
	return true
}

// typeName returns the TOML name of the type of a decoded value, with an article.
func typeName(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case map[string]any:
		return "a table"
	case []any:
		return "an array"
	}
	return "a date or a time"
}

// wanted describes the valid values of a setting, to end a sentence such as "it
// must be ...". name is the key, for lists of tables.
// It returns the words of an enumeration, if the type has some, and else describes the
// type.
func wanted(t reflect.Type, name string) string {
	switch {
	case words[t] != nil:
		return oneOf(words[t])
	case t == reflect.TypeFor[duration]():
		return "a string such as 10m"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "one or more [[" + name + "]] tables"
		}
		return "an array of strings"
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return "a table of strings"
		}
	}
	return "a table"
}

// forms are the formats of strings, by the struct tag "is". Their messages do not
// quote the string, because users paste API keys into the wrong setting.
var forms = map[string]struct {
	fits func(string) bool
	must string
}{
	"url": {func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	}, "must begin with http:// or https:// and include a host"},
	"variable": {regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString, "must be the name of an environment variable, such as OPENAI_API_KEY, not the key itself"},
	"path":     {filepath.IsAbs, "must be an absolute path"},
	"host": {func(text string) bool {
		_, err := hostrule.Parse(text)
		return err == nil
	}, "must be a host without https://, such as example.com, *.example.com or example.com:8080"},
	"header": {regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$").MatchString, "must be the name of an HTTP header, such as X-Api-Key"},
}

// badModels finds models with equal names, and settings that do not fit each other. These rules involve several keys, so struct
// tags cannot express them.
func (c Config) badModels() (bad []badValue) {
	names := map[string]bool{}
	for nth, m := range c.Models {
		add := func(key, message string) {
			if message != "" {
				bad = append(bad, badValue{[]string{"models", key}, nth, message})
			}
		}
		name := c.nameOf(m)
		if names[name] {
			add("name", fmt.Sprintf("models.name %q is used twice; names must be unique (default the id)", name))
		}
		names[name] = true
		add(c.badModel(m))
		add("fallback", c.badFallback(m))
	}
	return bad
}

// badValues finds values that break the struct tags of their fields: required
// keys, formats, enumerations and ranges. It recurses into tables and lists of
// tables. All types must be right already.
func badValues(table reflect.Value, above []string) (bad []badValue) {
	for field, v := range table.Fields() {
		key := append(slices.Clone(above), field.Tag.Get("toml"))
		if v.Kind() == reflect.Pointer {
			v = reflect.Indirect(v)
		}
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
			for nth := range v.Len() {
				for _, b := range badValues(v.Index(nth), key) {
					bad = append(bad, badValue{b.key, nth, b.message})
				}
			}
			continue
		}
		if v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Struct {
			names := v.MapKeys()
			slices.SortFunc(names, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
			for _, name := range names {
				bad = append(bad, badValues(v.MapIndex(name), append(slices.Clone(key), name.String()))...)
			}
			continue
		}
		message := ""
		switch from, to := boundsOf(field); {
		case !v.IsValid() && field.Tag.Get("required") == "":
		case !v.IsValid():
			message = "is missing"
		case field.Tag.Get("is") != "" && v.Kind() == reflect.Slice:
			if slices.ContainsFunc(v.Interface().([]string), func(text string) bool { return !forms[field.Tag.Get("is")].fits(text) }) {
				message = "contains a value that " + forms[field.Tag.Get("is")].must
			}
		case field.Tag.Get("is") != "" && v.String() != "" && !forms[field.Tag.Get("is")].fits(v.String()):
			message = forms[field.Tag.Get("is")].must
		case words[v.Type()] != nil && v.String() != "" && !slices.Contains(words[v.Type()], v.String()):
			message = fmt.Sprintf("is %q; it must be %s", v.String(), oneOf(words[v.Type()]))
		case v.Kind() == reflect.Slice && words[v.Type().Elem()] != nil:
			message = badWord(v)
		case to > 0 && v.Kind() == reflect.Float64:
			if f := v.Float(); !(f >= float64(from) && f <= float64(to)) {
				message = fmt.Sprintf("is %v; it must be from %d to %d", f, from, to)
			}
		case to > 0 && v.Int() != 0 && (v.Int() < from || v.Int() > to):
			message = fmt.Sprintf("is %d; it must be from %d to %d, or 0", v.Int(), from, to)
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[duration]():
			bad = append(bad, badValues(v, key)...)
		}
		if message != "" {
			bad = append(bad, badValue{key, 0, strings.Join(key, ".") + " " + message})
		}
	}
	return bad
}

// badWord returns the message for the first word of a list that its type does not have, "" if there is none.
func badWord(list reflect.Value) string {
	known := words[list.Type().Elem()]
	for i := range list.Len() {
		if word := list.Index(i).String(); !slices.Contains(known, word) {
			return fmt.Sprintf("contains %q; each must be %s", word, oneOf(known))
		}
	}
	return ""
}

// boundsOf returns the range of a numeric setting from its struct tags. There is
// no range if to is 0. Integers may also be 0, which means the default or no
// limit.
func boundsOf(f reflect.StructField) (from, to int64) {
	from, _ = strconv.ParseInt(f.Tag.Get("from"), 10, 64)
	to, _ = strconv.ParseInt(f.Tag.Get("to"), 10, 64)
	return from, to
}

// oneOf joins words to a phrase such as "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
