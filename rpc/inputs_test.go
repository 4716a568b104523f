package rpc_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"lashd/rpc/protocol"
)

func TestInputsOverTheWire(t *testing.T) {
	t.Run("part/12 session/inputs lists the inputs of turns that a client started", func(t *testing.T) {
		p := start(t).dial(t, false)
		id := p.newSession(t)
		for i, text := range []string{"hi", "again", "hi"} {
			if a := p.ask(t, i, "turn/run", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":%q}]}`, id, text)); a.Error != nil {
				t.Fatalf("%+v", a.Error)
			}
		}
		var r protocol.SessionInputsResult
		a := p.ask(t, 4, "session/inputs", `{}`)
		if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
			t.Fatalf("%+v %v", a.Error, err)
		}
		if len(r.Data) != 2 || r.Data[0].Text != "hi" || r.Data[1].Text != "again" || string(r.Data[0].SessionID) != id || r.Data[0].TurnID == "" || r.Data[0].AtMs == 0 {
			t.Errorf("%+v", r.Data)
		}
	})
}
