package endpoint

import (
	"encoding/json"
	"errors"
)

// Optional is an object that a reply can do without, such as its usage. A server may send anything in its place, because no reply fails
// for it: members of another type are left out.
type Optional[T any] struct {
	Value *T // nil: the object is absent, null, or not an object
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	o.Value = nil
	if data[0] != '{' {
		return nil
	}
	o.Value = new(T)
	if err := json.Unmarshal(data, o.Value); err != nil && !Mistyped(err) {
		return err
	}
	return nil
}

// Mistyped reports whether JSON was decoded except for members of another type than the decoder's. encoding/json decodes the members
// after such a one as well.
func Mistyped(err error) bool {
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok
}
