package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
)

// words are a call as an agent puts it.
type words struct {
	tool  string
	input json.RawMessage
	back  func(updated json.RawMessage) (json.RawMessage, error) // other arguments in lashd's words; nil: there are none
}

// tongue is a call in the words of one agent, of which there may be several: a patch is an edit for each file.
type tongue []words

// call is a call as lashd has it.
type call struct {
	tool string
	args json.RawMessage
	cwd  string
}

// tongues are the ways to put a call. The first is preferred where a hook is asked about every tool.
func (c call) tongues() []tongue {
	own := tongue{{tool: c.tool, input: c.args, back: func(updated json.RawMessage) (json.RawMessage, error) { return updated, nil }}}
	var before, after []tongue
	for _, f := range foreigners {
		if f.own != c.tool {
			continue
		}
		t, err := f.put(c)
		if err != nil || len(t) == 0 {
			continue // the arguments are not what the tool takes: it will say so
		}
		if f.agent == claude {
			before = append(before, t)
		} else {
			after = append(after, t)
		}
	}
	return slices.Concat(before, []tongue{own}, after)
}

// heard is what a hook is asked about: a call in the first tongue that has a name which its matcher knows.
func (m matcher) heard(tongues []tongue) []words {
	for _, t := range tongues {
		known := slices.DeleteFunc(slices.Clone(t), func(w words) bool { return !m.fits(w.tool) })
		if len(known) > 0 {
			return known
		}
	}
	return nil
}

// put is a call in the words of another agent.
func (f foreigner) put(c call) (tongue, error) {
	if f.special != nil {
		return f.special(c)
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(c.args, &own); err != nil {
		return nil, err
	}
	given := map[string]json.RawMessage{}
	for name, value := range own {
		if i := slices.IndexFunc(f.fields, func(x field) bool { return x.own == name }); i >= 0 {
			name, value = f.fields[i].theirs, f.fields[i].put(value, c.cwd)
		}
		given[name] = value
	}
	input, err := encode(given)
	back := func(updated json.RawMessage) (json.RawMessage, error) { return f.back(updated, own, given) }
	return tongue{{f.tool, input, back}}, err
}

// put is the value of a field in the words of another agent, who has all paths absolute.
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

var errNoObject = errors.New("updatedInput is no object")

// back is what another agent has made of a call in lashd's words. What it has left as it was stays as it was.
func (f foreigner) back(updated json.RawMessage, own, given map[string]json.RawMessage) (json.RawMessage, error) {
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
		if same(value, given[name]) {
			value = own[to]
		}
		args[to] = value
	}
	return json.Marshal(args)
}

// same tells whether two values are the same JSON.
func same(a, b json.RawMessage) bool {
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func canonical(raw json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any // of any shape: it belongs to a tool
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
