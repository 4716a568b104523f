package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/internal/strictjson"
)

// schema validates arguments. It is compiled on first use, because most tools of a catalog are not called in a turn. An
// invalid schema fails each validation with the same error. Safe for concurrent use.
type schema struct {
	raw     json.RawMessage
	resolve func() (*jsonschema.Resolved, error)
}

// newSchema returns a schema that is compiled and checked on first use.
func newSchema(raw json.RawMessage) *schema {
	return &schema{raw: raw, resolve: sync.OnceValues(func() (*jsonschema.Resolved, error) {
		var s jsonschema.Schema
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("schema: %s", strictjson.Reason(err))
		}
		showConstants(reflect.ValueOf(&s))
		resolved, err := s.Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if err := checkTypes(raw); err != nil {
			return nil, err
		}
		return resolved, checkReferences(raw)
	})}
}

// CheckValue returns an error unless the value matches the schema. An empty schema accepts every JSON value.
func CheckValue(raw, value json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	return newSchema(raw).validate(value)
}

// validate checks arguments. An empty schema accepts any object.
func (s *schema) validate(args json.RawMessage) error {
	if err := strictjson.Check(args, strictjson.Limits{}); err != nil { // readers disagree about which of two equal keys counts
		return fmt.Errorf("arguments: %w", err)
	}
	var value any // the validator needs decoded JSON
	if err := json.Unmarshal(args, &value); err != nil {
		return fmt.Errorf("arguments: %s", strictjson.Reason(err))
	}
	if len(s.raw) == 0 {
		if _, ok := value.(map[string]any); !ok {
			return errNoObject
		}
		return nil
	}
	return s.fits(value)
}

// fits validates a decoded value.
func (s *schema) fits(value any) error {
	resolved, err := s.resolve()
	if err != nil {
		return err
	}
	return inJSON(resolved.Validate(shown(value)))
}

var errNoObject = errors.New("arguments: must be an object")

// Checker returns CheckValue for one schema, compiled on first use. An empty schema accepts everything. Unlike
// CheckValue it does not check for duplicate keys: use it for values that were parsed strictly before.
func Checker(raw json.RawMessage) func(json.RawMessage) error {
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	s := newSchema(raw)
	return func(value json.RawMessage) error {
		var v any // the validator needs decoded JSON
		if err := json.Unmarshal(value, &v); err != nil {
			return errors.New(strictjson.Reason(err))
		}
		return s.fits(v)
	}
}

// CheckSchema returns an error unless raw is a valid schema for a tool's arguments. An empty schema is valid.
func CheckSchema(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	_, err := newSchema(raw).resolve()
	return err
}

// Fits returns an error unless the value matches the schema. An empty schema accepts any object.
func Fits(raw, value json.RawMessage) error { return newSchema(raw).validate(value) }
