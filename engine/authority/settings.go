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

// Mutated returns an error if a plugin's change of a session's configuration would give the session more rights than a
// person gave it. A plugin may make approval stricter, and may change its own options, the model, the prompt and other
// settings that do not affect rights.
func Mutated(plugin string, next, before protocol.Config) error {
	if err := Stricter(next.Approval, before.Approval); err != nil {
		return fmt.Errorf("a plugin may make approval stricter, never laxer: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(merged(next.Options, before.Options))) {
		if id != plugin && !sameJSON(next.Options[id], before.Options[id]) {
			return fmt.Errorf("a plugin may change its own options only, not the options of %q", id)
		}
	}
	return nil
}

// merged returns the keys of both; the values do not matter.
func merged(a, b protocol.PluginOptions) protocol.PluginOptions {
	all := maps.Clone(a)
	if all == nil {
		all = protocol.PluginOptions{}
	}
	maps.Copy(all, b)
	return all
}

// sameJSON compares decoded values, so formatting and key order do not matter. Values that are not JSON are equal only
// byte by byte.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err1 := decoded(a)
	y, err2 := decoded(b)
	return err1 == nil && err2 == nil && reflect.DeepEqual(x, y)
}

// decoded decodes a value and keeps numbers exact.
func decoded(text json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // large numbers that differ slightly must not become equal
	return v, d.Decode(&v)
}
