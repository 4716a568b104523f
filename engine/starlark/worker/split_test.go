package worker_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"lashd/engine/starlark/worker"
)

// FuzzMembers compares the members of a JSON object with those that encoding/json finds.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":1}`, ` { "a" : [1, {"b":"}\\\""}] , "c\n" : null }`, `{"a":1,`, `{"a"}`, `[]`, `{"a":"\\"}`, `{"a":-1.5e3}`, "{\"a\":1\n}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]string{}
		err := worker.Members(bytes.Clone(data), func(key string, value []byte) error {
			got[key] = string(value)
			return nil
		})
		var want map[string]json.RawMessage
		if !json.Valid(data) || json.Unmarshal(data, &want) != nil || want == nil {
			return // members may accept more, but must return
		}
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		for key, value := range want {
			if bytes.ContainsRune([]byte(key), '\uFFFD') {
				return // keys that are not UTF-8 are read differently
			}
			if got[key] != string(value) {
				t.Errorf("%q: member %q is %q, want %q", data, key, got[key], value)
			}
		}
	})
}
