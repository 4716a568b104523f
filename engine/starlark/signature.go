package starlark

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// signature is the list of the parameters of a tool, from the JSON Schema of its arguments: the required ones first, in
// the order in which the schema requires them, then the others in the order of its properties.
type signature struct {
	params []parameter
	open   bool // accepts arguments that the schema does not name
}

// parameter is one argument of a tool. Its name in code differs from that in the schema if that is no identifier.
type parameter struct {
	name, wire  string
	kind        string // as in the schema
	description string
	required    bool
	initial     string // default, as JSON; "": none
}

// property is the part of a JSON Schema that a signature shows.
type property struct {
	Type        json.RawMessage   `json:"type"`
	Enum        []json.RawMessage `json:"enum"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Items       *property         `json:"items"`
}

// newSignature reads a schema. A schema that it does not understand accepts any named arguments.
// It reads only what a model needs to write a call. Keywords such as oneOf or $ref stay with the daemon, which validates the
// arguments, so a signature that is too simple costs an error message and never lets a wrong call through.
func newSignature(schema json.RawMessage) *signature {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
		Additional json.RawMessage `json:"additionalProperties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return &signature{open: true}
	}
	var properties map[string]property
	_ = json.Unmarshal(s.Properties, &properties) // a property of another form is shown without its type
	names := order(s.Properties)
	out := &signature{open: len(names) == 0 && string(s.Additional) != "false" || len(s.Additional) > 0 && string(s.Additional) != "false"}
	sorted := slices.Clone(s.Required)
	for _, name := range names {
		if !slices.Contains(s.Required, name) {
			sorted = append(sorted, name)
		}
	}
	for i, name := range sorted {
		p := properties[name]
		out.params = append(out.params, parameter{
			name: identifier(name), wire: name, kind: p.kind(), description: p.Description, required: i < len(s.Required), initial: string(p.Default),
		})
	}
	return out
}

// order returns the names of the members of a JSON object in the order in which they are written.
//
// The order of members is lost in a map, and it is the best order for positional arguments.
func order(object json.RawMessage) []string {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var names []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return names
		}
		names = append(names, name.(string))
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return names
		}
	}
	return names
}

// kind returns the type of a property for people.
// Up to eight values of an enumeration are listed. More would make the guide long.
func (p property) kind() string {
	if len(p.Enum) > 0 && len(p.Enum) <= 8 {
		return string(bytes.Join(rawBytes(p.Enum), []byte(" | ")))
	}
	var one string
	var several []string
	switch {
	case json.Unmarshal(p.Type, &one) == nil:
	case json.Unmarshal(p.Type, &several) == nil:
		one = strings.Join(several, " | ")
	}
	words := map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict", "null": "None"}
	for from, to := range words {
		one = strings.ReplaceAll(one, from, to)
	}
	if one == "list" && p.Items != nil && p.Items.kind() != "" {
		return "list[" + p.Items.kind() + "]"
	}
	return one
}

// rawBytes converts a slice for bytes.Join. Its elements share memory with the originals.
func rawBytes(all []json.RawMessage) [][]byte {
	out := make([][]byte, len(all))
	for i, one := range all {
		out[i] = one
	}
	return out
}

// String returns the parameters as in the definition of a function.
// The text is part of the system prompt and of error messages, so it must not depend on anything but the schema.
func (s *signature) String() string {
	parts := make([]string, 0, len(s.params)+1)
	for _, p := range s.params {
		part := p.name
		if p.kind != "" {
			part += ": " + p.kind
		}
		switch {
		case p.initial != "":
			part += " = " + p.initial
		case !p.required:
			part += " = None"
		}
		parts = append(parts, part)
	}
	if s.open {
		parts = append(parts, "**kwargs")
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// notes returns the descriptions of the parameters, one a line.
// Only the doc of a tool shows them. The guide, which is part of each request, leaves them out.
func (s *signature) notes() string {
	var out strings.Builder
	for _, p := range s.params {
		if p.description != "" {
			fmt.Fprintf(&out, "\n  %s: %s", p.name, p.description)
		}
	}
	return out.String()
}

// arguments binds the arguments of a call and returns them as a JSON object. None for an optional argument leaves it out.
//
// Types are not checked here: the daemon validates the arguments against the full schema, and its message says what is wrong.
func (s *signature) arguments(name string, args starlark.Tuple, kwargs []starlark.Tuple, limit int) (json.RawMessage, error) {
	if len(args) > len(s.params) {
		return nil, fmt.Errorf("%s takes at most %d positional arguments, got %d; its signature is %s%s", name, len(s.params), len(args), name, s)
	}
	given := starlark.NewDict(len(args) + len(kwargs))
	for i, v := range args {
		if v != starlark.None || s.params[i].required {
			_ = given.SetKey(starlark.String(s.params[i].wire), v) // strings are hashable, and the dict is new
		}
	}
	for _, pair := range kwargs {
		p, err := s.parameter(name, string(pair[0].(starlark.String)))
		if err != nil {
			return nil, err
		}
		if _, twice, _ := given.Get(starlark.String(p.wire)); twice {
			return nil, fmt.Errorf("%s got two values for the argument %s", name, p.name)
		}
		if pair[1] != starlark.None || p.required {
			_ = given.SetKey(starlark.String(p.wire), pair[1])
		}
	}
	for _, p := range s.params {
		if _, ok, _ := given.Get(starlark.String(p.wire)); p.required && !ok {
			return nil, fmt.Errorf("%s needs the argument %s; its signature is %s%s", name, p.name, name, s)
		}
	}
	data, err := toJSON(given, limit)
	if err != nil {
		return nil, fmt.Errorf("the arguments of %s: %w", name, err)
	}
	return data, nil
}

// parameter returns the parameter with a name, as in code or as in the schema.
// Models know names both from the guide and from other clients of the tool, so both forms are accepted.
func (s *signature) parameter(tool, name string) (parameter, error) {
	names := make([]string, len(s.params))
	for i, p := range s.params {
		if p.name == name || p.wire == name {
			return p, nil
		}
		names[i] = p.name
	}
	if s.open {
		return parameter{name: name, wire: name}, nil
	}
	return parameter{}, fmt.Errorf("%s has no argument %s%s; its signature is %s%s", tool, name, hint(nearest(name, names)), tool, s)
}
