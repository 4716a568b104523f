package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Reason describes an error of encoding/json in terms of JSON, without names of Go packages and
// types. The text has no capital letter and no period. It leaves out errors that wrap the error of
// encoding/json.
func Reason(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return mismatch(e)
	}
	if e, ok := errors.AsType[*strconv.NumError](err); ok {
		return fmt.Sprintf("%s is not a number or is out of range", Quote(e.Num))
	}
	text := err.Error()
	if strings.Contains(text, "struct tag") { // for a number in a string
		return "expected a number in a string"
	}
	return strings.ReplaceAll(text, "json: ", "")
}

// mismatch describes a value of the wrong type. e.Value is a JSON type, or "number" followed by the number.
func mismatch(e *json.UnmarshalTypeError) string {
	number, isNumber := strings.CutPrefix(e.Value, "number ")
	want, known := kinds[e.Type.Kind()]
	switch {
	case isNumber && isNumeric(e.Type.Kind()):
		return unfit(number)
	case known:
		return fmt.Sprintf("expected %s, got %s", want, strings.Fields(e.Value + " ?")[0])
	case strings.HasPrefix(e.Value, "number"):
		return "must not be a number"
	}
	return fmt.Sprintf("must not be of type %s", truncate(e.Value))
}

// unfit returns why a number, or an object key that must be a number, was rejected.
func unfit(number string) string {
	if _, err := strconv.ParseFloat(number, 64); errors.Is(err, strconv.ErrSyntax) {
		return Quote(number) + " is not a number"
	}
	return truncate(number) + " is out of range"
}

// isNumeric reports whether k is an integer or a floating-point type.
func isNumeric(k reflect.Kind) bool { return reflect.Int <= k && k <= reflect.Float64 }

// kinds maps kinds of Go types to JSON types.
var kinds = map[reflect.Kind]string{
	reflect.Struct: "object", reflect.Map: "object", reflect.Slice: "array", reflect.Array: "array", reflect.String: "string", reflect.Bool: "boolean",
	reflect.Int: "integer", reflect.Int8: "integer", reflect.Int16: "integer", reflect.Int32: "integer", reflect.Int64: "integer",
	reflect.Uint: "integer", reflect.Uint8: "integer", reflect.Uint16: "integer", reflect.Uint32: "integer", reflect.Uint64: "integer",
	reflect.Float32: "number", reflect.Float64: "number",
}
