package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// mover is a protocol session that moves on once, and rejects what is "bad".
type mover struct{ moved bool }

func (*mover) ID() string                                         { return "mover" }
func (m *mover) Build(plugin.BuildContext) (plugin.Plugin, error) { return &mover{}, nil }

func (m *mover) Register(r *plugin.Registrar) error {
	refuse := func(x json.RawMessage) error {
		if string(x) == `"bad"` {
			return errors.New("not that")
		}
		return nil
	}
	r.Protocol().Session(plugin.ProtocolSession{
		ValidateTurn:   func(_ context.Context, o *protocol.TurnOptions) error { return refuse(o.Payload) },
		ApplyExtension: func(_ context.Context, x json.RawMessage) error { return refuse(x) },
		BeforeModel: func(context.Context, *plugin.BeforeModel) (*protocol.FrameSwitch, error) {
			if m.moved {
				return nil, nil
			}
			m.moved = true
			return &protocol.FrameSwitch{Key: "next", Task: "go on"}, nil
		},
	})
	return nil
}

func TestProtocolsOnTheWire(t *testing.T) {
	w := startWith(t, []plugin.Factory{&mover{}}).dial(t, false)
	in := fmt.Sprintf(`{"sessionId":%q`, w.newSession(t))
	t.Run("plugin/PR-01 plugin/PR-04 rejected protocol inputs have an error kind, and accepted ones get a response", func(t *testing.T) {
		for _, c := range [][2]string{
			{"session/applyExtension", `,"extension":"bad"}`},
			{"turn/start", `,"input":[{"type":"text","text":"go"}],"turnOptions":{"schemaVersion":1,"payload":"bad"}}`},
		} {
			if a := w.ask(t, 1, c[0], in+c[1]); a.Error == nil || a.Error.Data.Kind != protocol.KindExtensionRejected || a.Error.Data.Outcome != protocol.EffectNone {
				t.Errorf("%s: %+v", c[0], a.Error)
			}
		}
		if a := w.ask(t, 1, "session/applyExtension", in+`,"extension":1}`); a.Error != nil {
			t.Errorf("%+v", a.Error)
		}
	})
	t.Run("runtime/T25 turn/run returns the report of the last follow-up turn, turn/wait only with follow", func(t *testing.T) {
		report := func(method, params string) (r protocol.TurnReport) {
			t.Helper()
			a := w.ask(t, 2, method, params)
			if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
				t.Fatalf("%s: %+v %v", method, a.Error, err)
			}
			return r
		}
		last := report("turn/run", in+`,"input":[{"type":"text","text":"go"}]}`)
		all := w.ask(t, 3, "turn/list", in+`}`)
		var turns protocol.TurnListResult
		if err := json.Unmarshal(all.Result, &turns); err != nil || len(turns.Data) != 2 || turns.Data[1].FollowedBy != last.TurnID || last.State != protocol.TurnCompleted {
			t.Fatalf("last %+v, all %+v, %v", last, turns.Data, err)
		}
		first := fmt.Sprintf(`{"turnId":%q`, turns.Data[1].TurnID)
		if r := report("turn/wait", first+`}`); r.Outcome.Kind != protocol.OutcomeFrameSwitch {
			t.Errorf("the first turn ended as %+v", r.Outcome)
		}
		if r := report("turn/wait", first+`,"follow":true}`); r.TurnID != last.TurnID {
			t.Errorf("followed to %s, want %s", r.TurnID, last.TurnID)
		}
	})
}
