package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Errors of schemas whose references are not supported.
var (
	errCycle     = errors.New("schema: a reference refers to itself without descending into the value")
	errReference = errors.New("schema: a reference must be of the form # or #/path")
	errSteps     = errors.New("schema: too many schemas apply to one value")
)

// maxSteps limits the schemas that may apply to one value. In a chain of definitions that each refer to the next one
// twice, the number doubles with each link, and the validator cannot be interrupted.
const maxSteps = 10_000

// checkReferences rejects schemas on which validation would not terminate. The validator follows references before it
// descends into the value, so {"$ref":"#"} would overflow the stack, and a stack overflow cannot be recovered. Only
// local references with an existing target are allowed.
func checkReferences(raw json.RawMessage) error {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return err
	}
	c := references{root: root, state: map[string]progress{}, steps: map[string]int{}}
	return c.walk("", root)
}

// progress is the state of the search at one place of the schema.
type progress int

const (
	entered progress = iota + 1
	left
)

// references walks a schema and follows its references. A place in the schema is a JSON pointer. Each place is followed
// once; its number of steps is remembered and added again whenever another reference leads there.
type references struct {
	root  any
	state map[string]progress // of places whose references are being followed or have been
	steps map[string]int      // schemas that apply at a finished place
	total int                 // schemas counted so far
}

// walk checks every object at and below a place.
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

// follow visits the schemas that apply to the same value as the one at the place. Meeting a place that is still being
// visited is a cycle.
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

// followAll follows the value of a keyword: a schema, a list of schemas or an object of schemas.
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

// followReference follows $ref, and rejects the keywords that would change what it means.
func (c *references) followReference(at string, schema map[string]any) error {
	for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := schema[key].(string); ok {
			return fmt.Errorf("at %q: %w", "#"+at+"/"+key, errReference)
		}
	}
	if _, ok := schema["$id"].(string); ok && at != "" {
		return fmt.Errorf("at %q: %w", "#"+at+"/$id", errReference) // it would change the base of #
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

// find returns the value that a pointer refers to, and the pointer in the form that walk uses. Pointers may be
// percent-encoded and may index into arrays. It reports false if there is no such value.
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

// escape encodes a key for a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
