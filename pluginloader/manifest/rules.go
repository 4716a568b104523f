package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"lashd/internal/strictjson"
)

// mistakes returns the errors of a decoder as a list.
func mistakes(err error) strictjson.Errors {
	if err == nil {
		return nil
	}
	if all, ok := errors.AsType[strictjson.Errors](err); ok {
		return all
	}
	return strictjson.Errors{{Reason: err.Error()}}
}

// worded is a string type with a fixed set of values. The rules and the schema use it.
type worded interface{ words() []string }

// form is the syntax of a string: the expression that it matches, and its description for people.
type form struct {
	fits func() *regexp.Regexp
	want string
}

// lazy compiles an expression on first use, so that it does not slow down the start of lashd.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// forms maps the values of form tags to their syntax.
var forms = map[string]form{
	"id":        {lazy(`^[a-z0-9][a-z0-9._-]{0,63}$`), "lower-case letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit"},
	"tool":      {lazy(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`), "letters, digits, '_' and '-', at most 64, the first a letter or '_'"},
	"server":    {lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`), "letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit"},
	"operation": {lazy(`^[A-Za-z][A-Za-z0-9._-]{0,127}$`), "letters, digits, '.', '_' and '-', at most 128, the first a letter"},
	"parameter": {lazy(`^[A-Za-z][A-Za-z0-9_]{0,63}$`), "letters, digits and '_', at most 64, the first a letter"},
	"env":       {lazy(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`), "letters, digits and '_', at most 128, the first no digit"},
	"header":    {lazy("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$"), "the name of an HTTP header"},
	"absolute":  {lazy(`^/`), "an absolute path"},
	"host":      {lazy(`^(\*\.)?[A-Za-z0-9_.-]+(:[0-9]{1,5})?$|^\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?$|^\*(:[0-9]{1,5})?$`), "a host without https://, such as example.com, *.example.com or example.com:8080"},
}

// limits are the rules in a field's tags. types.go explains the tags.
type limits struct {
	min, max, each int64
	hasMin, hasMax bool
	form           string
	subst          string
}

// limitsOf reads the tags of a field.
func limitsOf(f reflect.StructField) limits {
	l := limits{form: f.Tag.Get("form"), subst: f.Tag.Get("subst")}
	l.min, l.hasMin = number(f.Tag.Get("min"))
	l.max, l.hasMax = number(f.Tag.Get("max"))
	l.each, _ = number(f.Tag.Get("each"))
	return l
}

// number parses a numeric tag; false: the tag is absent.
func number(tag string) (int64, bool) {
	n, err := strconv.ParseInt(tag, 10, 64)
	return n, err == nil
}

// jsonName returns a field's name in JSON and whether the field is optional.
func jsonName(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, strings.Contains(options, "omit")
}

// rules checks the fields of a struct, and everything inside them, against their tags. Optional
// fields that are zero pass.
func (s *source) rules(pointer string, v reflect.Value) {
	for f, value := range v.Fields() {
		if f.Anonymous {
			s.rules(pointer, value)
			continue
		}
		name, optional := jsonName(f)
		if optional && value.IsZero() {
			continue
		}
		if f.Tag.Get("slot") == "none" {
			s.warn(pointer+"/"+name, "%q is for other agents and has no effect in lashd", name)
		}
		s.value(pointer+"/"+name, value, limitsOf(f))
	}
}

// rawJSON is the type of fields that hold any JSON.
var rawJSON = reflect.TypeFor[json.RawMessage]()

// value checks one value against limits. For lists and objects, it checks the elements as well.
func (s *source) value(pointer string, v reflect.Value, l limits) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case !v.IsValid(): // it could not be decoded
	case v.Type() == rawJSON:
		s.size(pointer, int64(v.Len()), l, "bytes")
	case v.Kind() == reflect.String:
		s.text(pointer, v, l)
	case v.Kind() == reflect.Struct:
		s.rules(pointer, v)
	case v.Kind() == reflect.Slice:
		s.size(pointer, int64(v.Len()), l, "elements")
		for i := range v.Len() {
			s.value(fmt.Sprint(pointer, "/", i), v.Index(i), l.ofElement())
		}
	case v.Kind() == reflect.Map:
		s.table(pointer, v, l)
	case v.CanInt():
		s.size(pointer, v.Int(), l, "")
	}
}

// ofElement returns the limits of the elements of a list or an object.
func (l limits) ofElement() limits {
	return limits{max: l.each, hasMax: l.each > 0, form: l.form, subst: l.subst}
}

// table checks an object with arbitrary keys. The form of l applies to the keys.
func (s *source) table(pointer string, v reflect.Value, l limits) {
	s.size(pointer, int64(v.Len()), l, "members")
	inner := l.ofElement()
	inner.form = ""
	for _, key := range slices.Sorted(maps.Keys(keysOf(v))) {
		at := pointer + "/" + escape(key)
		if f, ok := forms[l.form]; ok && !f.fits().MatchString(key) {
			s.atKey(at, "%s is not a valid name: it must be %s", strictjson.Quote(key), f.want)
		}
		s.value(at, v.MapIndex(reflect.ValueOf(key)), inner)
	}
}

// keysOf returns the keys of a map as a set.
func keysOf(v reflect.Value) map[string]bool {
	keys := map[string]bool{}
	for _, k := range v.MapKeys() {
		keys[k.String()] = true
	}
	return keys
}

// escape escapes a key for use in a JSON pointer.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// size checks a count or a number. of is the unit, in the plural.
func (s *source) size(pointer string, n int64, l limits, of string) {
	switch {
	case l.hasMax && n > l.max:
		s.at(pointer, "%s: at most %d", counted(n, of), l.max)
	case l.hasMin && n < l.min:
		s.at(pointer, "%s: at least %d", counted(n, of), l.min)
	}
}

// counted returns a number with its unit.
func counted(n int64, of string) string {
	if n == 1 {
		of = strings.TrimSuffix(of, "s")
	}
	return strings.TrimSpace(fmt.Sprint(n, " ", of))
}

// text checks a string: its value if the type is worded, otherwise its length, syntax and
// variables.
func (s *source) text(pointer string, v reflect.Value, l limits) {
	text := v.String()
	if w, ok := v.Interface().(worded); ok {
		s.word(pointer, text, w.words())
		return
	}
	s.size(pointer, int64(utf8.RuneCountInString(text)), l, "characters")
	if f, ok := forms[l.form]; ok && !f.fits().MatchString(text) {
		s.at(pointer, "%s must be %s", strictjson.Quote(text), f.want)
	}
	if strings.ContainsRune(text, 0) {
		s.at(pointer, "NUL characters are not allowed")
	}
	s.substitutions(pointer, text, l.subst)
}

// word checks that a string has one of the allowed values.
func (s *source) word(pointer, word string, words []string) {
	if slices.Contains(words, word) {
		return
	}
	if near := strictjson.Nearest(word, words); near != "" {
		s.at(pointer, "unknown value %s; did you mean %q?", strictjson.Quote(word), near)
		return
	}
	s.at(pointer, "unknown value %s; use one of %s", strictjson.Quote(word), strings.Join(words, ", "))
}
