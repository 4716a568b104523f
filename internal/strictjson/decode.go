package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Decode stores data, which must pass Check with the default limits, in the value that into points to, as
// encoding/json would, but only if it fits exactly:
//
//   - keys are the declared json names, case and all; other keys are refused, unless they begin with "_";
//   - keys of maps are free, and nothing is asked of what a json.RawMessage, an any or a json.Unmarshaler takes;
//   - null stands for a pointer, slice, map or optional (omitempty, omitzero) field, and for nothing else;
//   - numbers fit their type, and arrays their length;
//   - every field that is not optional is there, in each object, however deep: its absence would silently be a zero.
//
// An optional field that is missing stays as it was. A type has at most 64 fields. The error is an *Error whose Pointer names the value; into may be half written then.
func Decode(data []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("strictjson: decode into %T, which is not a pointer to a value", into)
	}
	if err := Check(data, Limits{}); err != nil {
		return err
	}
	return DecodeChecked(data, into)
}

// DecodeChecked is Decode of data that has passed Check, with whatever limits, or that is a value in such data. Into must
// point to a value.
func DecodeChecked(data []byte, into any) error {
	v := reflect.ValueOf(into)
	if err := fits(data, v.Type().Elem(), false); err != nil {
		return err
	}
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	// encoding/json does not say where, so ask it about each value it alone can judge.
	if at := fits(data, v.Type().Elem(), true); at != nil {
		return at
	}
	return &Error{Reason: Reason(err)}
}

func fits(data []byte, t reflect.Type, probe bool) error {
	w := walker{cursor: cursor{data: data}, probe: probe}
	w.path = w.few[:0]
	if err := w.value(t, false); err != nil {
		return err
	}
	return nil
}
