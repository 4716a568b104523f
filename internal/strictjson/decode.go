package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Decode stores data in the value that into points to, as encoding/json does, but only if data fits
// the type exactly. Data must pass Check with the default limits. The rules:
//
//   - Keys are the declared json names, in the same case. Other keys are rejected unless they begin with "_".
//   - Map keys are free. A json.RawMessage, an any or a json.Unmarshaler accepts any value.
//   - null is accepted for pointers, slices, maps and optional (omitempty, omitzero) fields only.
//   - Numbers fit their type, and arrays have the right length.
//   - Every field that is not optional is present in each object. Otherwise it would silently be zero.
//
// A missing optional field keeps its value. A type has at most 64 fields. The error is an *Error
// whose Pointer names the value; into may then be partly written.
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

// DecodeChecked is Decode for data that has passed Check with any limits, or for a value within
// such data. into must be a non-nil pointer.
func DecodeChecked(data []byte, into any) error {
	v := reflect.ValueOf(into)
	if err := fits(data, v.Type().Elem(), false); err != nil {
		return err
	}
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	// encoding/json does not report the place, so try it on each value that only it can judge.
	if at := fits(data, v.Type().Elem(), true); at != nil {
		return at
	}
	return &Error{Reason: Reason(err)}
}

// fits compares data with a type and returns the first mistake, or nil. With probe it also decodes
// each value that only encoding/json can judge, which costs a second decoding of these values.
func fits(data []byte, t reflect.Type, probe bool) error {
	w := walker{cursor: cursor{data: data}, probe: probe}
	w.path = w.few[:0]
	if err := w.value(t, false); err != nil {
		return err
	}
	return nil
}
