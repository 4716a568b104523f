package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

var (
	errCycle     = errors.New("schema: a reference leads back to itself without going into the value")
	errReference = errors.New("schema: a reference must be of the form # or #/path")
	errSteps     = errors.New("schema: too many schemas apply to one value")
)

// maxSteps is how many schemas may apply to one value. A chain of definitions which each refer twice to the next one
// doubles with every link, and the validator cannot be stopped.
const maxSteps = 10_000

// checkReferences refuses schemas with which validating would never end: the validator follows a reference before it
// goes into the value, so {"$ref":"#"} overflows the stack, which no recover can stop. Only references whose target
// is plain to see are allowed.
func checkReferences(raw json.RawMessage) error {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return err
	}
	c := references{root: root, state: map[string]progress{}, steps: map[string]int{}}
	return c.walk("", root)
}

type progress int

const (
	entered progress = iota + 1
	left
)

// references walks a schema. A place in it is a JSON pointer.
type references struct {
	root  any
	state map[string]progress // of places whose references are being followed, or were
	steps map[string]int      // how many schemas apply at a place that was left
	total int                 // steps so far
}

// walk looks at every object at and below a place.
func (c *references) walk(at string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		if err := c.follow(at, v); err != nil {
			return err
		}
		for key, child := range v {
			if err := c.walk(at+"/"+escape(key), child); err != nil {
				return err
			}
		}
	case []any:
		for i, child := range v {
			if err := c.walk(at+"/"+strconv.Itoa(i), child); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow goes to the schemas that apply to the same value as the one at a place.
func (c *references) follow(at string, v any) error {
	schema, ok := v.(map[string]any)
	if !ok || c.state[at] == left {
		c.total += c.steps[at]
		return nil
	}
	if c.state[at] == entered {
		return fmt.Errorf("at %q: %w", "#"+at, errCycle)
	}
	c.state[at] = entered
	before := c.total
	c.total++
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"} {
		if err := c.followAll(at, schema, key); err != nil {
			return err
		}
	}
	if err := c.followReference(at, schema); err != nil {
		return err
	}
	c.state[at] = left
	if c.steps[at] = c.total - before; c.steps[at] > maxSteps {
		return fmt.Errorf("at %q: %w", "#"+at, errSteps)
	}
	return nil
}

// followAll follows what a keyword holds: a schema, a list of them, or an object of them.
func (c *references) followAll(at string, schema map[string]any, key string) error {
	at += "/" + key
	switch v := schema[key].(type) {
	case []any:
		for i, child := range v {
			if err := c.follow(at+"/"+strconv.Itoa(i), child); err != nil {
				return err
			}
		}
	case map[string]any:
		if !strings.HasPrefix(key, "depend") {
			return c.follow(at, v)
		}
		for name, child := range v {
			if err := c.follow(at+"/"+escape(name), child); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *references) followReference(at string, schema map[string]any) error {
	for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := schema[key].(string); ok {
			return fmt.Errorf("at %q: %w", "#"+at+"/"+key, errReference)
		}
	}
	if _, ok := schema["$id"].(string); ok && at != "" {
		return fmt.Errorf("at %q: %w", "#"+at+"/$id", errReference) // it would change what # means
	}
	ref, ok := schema["$ref"].(string)
	if !ok {
		return nil
	}
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return fmt.Errorf("at %q: %w", "#"+at+"/$ref", errReference)
	}
	place, target, ok := c.find(pointer)
	if !ok {
		return fmt.Errorf("at %q: %w", "#"+at+"/$ref", errReference)
	}
	return c.follow(place, target)
}

// find is what a pointer points at, and the pointer as walk writes it.
func (c *references) find(pointer string) (place string, v any, ok bool) {
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return "", nil, false
	}
	v = c.root
	for _, key := range strings.Split(pointer, "/")[1:] {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch in := v.(type) {
		case map[string]any:
			v, ok = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			ok = err == nil && i >= 0 && i < len(in)
			if ok {
				v, key = in[i], strconv.Itoa(i)
			}
		default:
			ok = false
		}
		if !ok {
			return "", nil, false
		}
		place += "/" + escape(key)
	}
	return place, v, true
}

func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
