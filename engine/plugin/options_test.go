package plugin_test

import (
	"errors"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func TestOptions(t *testing.T) {
	type shape struct {
		N int `json:"n"`
	}
	t.Run("plugin/PR-04 options are absent, valid or an error", func(t *testing.T) {
		for _, none := range []string{"", "null"} {
			if got, err := plugin.DecodeOptions[shape](raw(none)); got != nil || err != nil {
				t.Errorf("%q: %+v, %v", none, got, err)
			}
		}
		if got, err := plugin.DecodeOptions[shape](raw(`{"n":3}`)); err != nil || got.N != 3 {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := plugin.DecodeOptions[shape](raw(`{"n":"three"}`)); !errors.As(err, new(*plugin.OptionsError)) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/PR-04 turn options of another version are an error", func(t *testing.T) {
		if got, err := plugin.DecodeTurnOptions[shape](nil, 1); got != nil || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := plugin.DecodeTurnOptions[shape](&protocol.TurnOptions{SchemaVersion: 2, Payload: raw(`{"n":3}`)}, 2); err != nil || got.N != 3 {
			t.Errorf("%+v, %v", got, err)
		}
		for _, version := range []int{0, 1} {
			_, err := plugin.DecodeTurnOptions[shape](&protocol.TurnOptions{SchemaVersion: version, Payload: raw(`{}`)}, 2)
			if e, ok := errors.AsType[*plugin.OptionsError](err); !ok || e.Version != version || e.Want != 2 {
				t.Errorf("version %d: %v", version, err)
			}
		}
	})
	t.Run("plugin/PR-04 members of the turn's options override the session's", func(t *testing.T) {
		of := func(payload string) *protocol.TurnOptions {
			if payload == "" {
				return nil
			}
			return &protocol.TurnOptions{SchemaVersion: 1, Payload: raw(payload)}
		}
		for _, c := range [][3]string{
			{``, `1`, `1`}, {`1`, ``, `1`}, {`1`, `2`, `2`}, {`{"a":1}`, `2`, `2`}, {`2`, `{"a":1}`, `{"a":1}`}, {`{"a":1}`, `null`, `null`},
			{`{"a":1,"b":{"c":1}}`, `{"b":{"d":2}}`, `{"a":1,"b":{"d":2}}`},
		} {
			got, err := plugin.MergeTurnOptions(of(c[0]), of(c[1]))
			if err != nil || string(got.Payload) != c[2] {
				t.Errorf("%s over %s is %s, %v", c[1], c[0], got.Payload, err)
			}
		}
	})
}
