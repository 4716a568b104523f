package param_test

import (
	"encoding/json"
	"testing"

	"lashd/engine/param"
)

func TestCheckPayload(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}}}`
	for payload, want := range map[string]string{
		`{"n":1}`:          "",
		``:                 "/payload: is required, as JSON",
		`{"n":{"a":[{}]}}`: `/payload: validating root: validating /properties/n: type: {"a":[{}]} has type "object", want "integer"`,
	} {
		t.Run("outside/21 "+payload, func(t *testing.T) {
			got := ""
			if err := param.CheckPayload("/payload", json.RawMessage(schema), json.RawMessage(payload)); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
