package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
)

// words is a tool call in the format of one agent: the tool's name there, and its arguments.
type words struct {
	tool  string
	input json.RawMessage
	path  string                                                 // the file, if the call is one of several that stand for a patch
	back  func(updated json.RawMessage) (json.RawMessage, error) // converts changed arguments to lashd's format; nil: they cannot be changed
}

// format is a tool call in the words of one agent, as one or more calls: a patch becomes one edit
// for each file.
type format []words

// call is a tool call in lashd's format.
type call struct {
	tool string
	args json.RawMessage
	cwd  string
}

// formats returns the call in all formats: first that of Claude Code, whose format most hooks use,
// then lashd's own, then those of other agents. A hook without restriction gets the first one.
func (c call) formats() []format {
	own := format{{tool: c.tool, input: c.args, back: func(updated json.RawMessage) (json.RawMessage, error) { return updated, nil }}}
	var before, after []format
	for _, f := range toolMappings {
		if f.own != c.tool {
			continue
		}
		t, err := f.put(c)
		if err != nil || len(t) == 0 {
			continue // the arguments are invalid; the tool will report that
		}
		if f.agent == claude {
			before = append(before, t)
		} else {
			after = append(after, t)
		}
	}
	return slices.Concat(before, []format{own}, after)
}

// matching returns the calls that a hook gets: those of the first format with a name that matches.
func (m matcher) matching(formats []format) []words {
	for _, t := range formats {
		known := slices.DeleteFunc(slices.Clone(t), func(w words) bool { return !m.fits(w.tool) })
		if len(known) > 0 {
			return known
		}
	}
	return nil
}

// put returns the call in the other agent's format: with its names of arguments, and with absolute
// paths.
func (f toolMapping) put(c call) (format, error) {
	if f.special != nil {
		return f.special(c)
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(c.args, &own); err != nil {
		return nil, err
	}
	shown := map[string]json.RawMessage{}
	for name, value := range own {
		if i := slices.IndexFunc(f.fields, func(x field) bool { return x.own == name }); i >= 0 {
			name, value = f.fields[i].theirs, f.fields[i].put(value, c.cwd)
		}
		shown[name] = value
	}
	input, err := encode(shown)
	back := func(updated json.RawMessage) (json.RawMessage, error) { return f.back(updated, own, shown) }
	return format{{tool: f.tool, input: input, back: back}}, err
}

// put returns the value of an argument in the other agent's format, in which all paths are
// absolute.
func (x field) put(value json.RawMessage, cwd string) json.RawMessage {
	var path string
	if !x.path || json.Unmarshal(value, &path) != nil || filepath.IsAbs(path) {
		return value
	}
	absolute, err := json.Marshal(filepath.Join(cwd, path))
	if err != nil {
		return value
	}
	return absolute
}

// errNoObject rejects changed arguments that are not an object, as tool arguments must be.
var errNoObject = errors.New("updatedInput is not an object")

// back converts changed arguments to lashd's format. own are lashd's arguments, shown those that
// the hook got. A value that the hook left alone keeps lashd's form, for example a relative path.
// Arguments that lashd does not have are dropped.
func (f toolMapping) back(updated json.RawMessage, own, shown map[string]json.RawMessage) (json.RawMessage, error) {
	var theirs map[string]json.RawMessage
	if err := json.Unmarshal(updated, &theirs); err != nil || theirs == nil {
		return nil, errNoObject
	}
	args := map[string]json.RawMessage{}
	for name, value := range theirs {
		if slices.Contains(f.unknown, name) {
			continue
		}
		to := name
		if i := slices.IndexFunc(f.fields, func(x field) bool { return x.theirs == name }); i >= 0 {
			to = f.fields[i].own
		}
		if same(value, shown[name]) {
			value = own[to]
		}
		args[to] = value
	}
	return json.Marshal(args)
}

// same reports whether two JSON values are equal, apart from spacing and the order of members.
// Invalid JSON equals nothing.
func same(a, b json.RawMessage) bool {
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// canonical returns a JSON value in a normal form.
func canonical(raw json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any // of any shape: it belongs to a tool
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
