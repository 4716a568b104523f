package command

import (
	"encoding/json"
	"testing"
)

func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		``, `text`, `{}`, `{"continue":false}`, `{"decision":"block","reason":"x"}`, `{"decision":"block"`, `{"hookSpecificOutput":{"permissionDecision":"deny"}}`,
		`{"hookSpecificOutput":null}`, `{"hookSpecificOutput":{"updatedInput":{"a":1}}}`, `[1]`, `{} {}`, "{\"reason\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, isJSON, err := parseReply("PreToolUse", text)
		if o.strength > silent && (err != nil || !isJSON || !json.Valid(text)) {
			t.Errorf("%q is taken for %s, %v", text, o.strength, err)
		}
		if err == nil && isJSON && !json.Valid(text) {
			t.Errorf("%q is taken for JSON", text)
		}
	})
}
