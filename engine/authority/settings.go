package authority

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"lashd/rpc/protocol"
)

// Mutated fails if a plugin changes a session's configuration in a way that gives the session more than a person has given it. What a plugin
// may do to it: make approval stricter, and change its own options, the model, the prompt and whatever else says how the session
// works, not what it may do.
func Mutated(plugin string, next, before protocol.Config) error {
	if err := Stricter(next.Approval, before.Approval); err != nil {
		return fmt.Errorf("a plugin may make approval stricter, never laxer: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(merged(next.Options, before.Options))) {
		if id != plugin && !sameJSON(next.Options[id], before.Options[id]) {
			return fmt.Errorf("a plugin may change its own options only, not those of %q", id)
		}
	}
	return nil
}

func merged(a, b protocol.PluginOptions) protocol.PluginOptions {
	all := maps.Clone(a)
	if all == nil {
		all = protocol.PluginOptions{}
	}
	maps.Copy(all, b)
	return all
}

// sameJSON compares values, not how they are written.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err1 := decoded(a)
	y, err2 := decoded(b)
	return err1 == nil && err2 == nil && reflect.DeepEqual(x, y)
}

func decoded(text json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a large number is not another one that is near
	return v, d.Decode(&v)
}
