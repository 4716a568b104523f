package process

import "testing"

func TestNullParamsAreLeftOut(t *testing.T) {
	t.Run("outside/18 a message of a plugin", func(t *testing.T) {
		m, err := parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"host/toolState","params":null}`), 8)
		if err != nil || m.Params != nil {
			t.Errorf("params null were read as %q, %v, want none", m.Params, err)
		}
	})
}
