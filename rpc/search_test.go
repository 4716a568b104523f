package rpc_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"lashd/rpc/protocol"
)

func TestSearchOverTheWire(t *testing.T) {
	t.Run("issue/21-3 session/search finds the messages of a turn as soon as it has ended, and the title", func(t *testing.T) {
		p := start(t).dial(t, false)
		id := p.newSession(t)
		for i, request := range []struct{ method, params string }{
			{"turn/run", `{"sessionId":%q,"input":[{"type":"text","text":"a needle in a haystack"}]}`},
			{"session/setTitle", `{"sessionId":%q,"title":"Needles"}`},
		} {
			if a := p.ask(t, i, request.method, fmt.Sprintf(request.params, id)); a.Error != nil {
				t.Fatalf("%+v", a.Error)
			}
		}
		var r protocol.SessionSearchResult
		a := p.ask(t, 4, "session/search", `{"query":"needle"}`)
		if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
			t.Fatalf("%+v %v", a.Error, err)
		}
		if len(r.Data) != 2 || r.Pending != 0 || r.NextCursor != "" {
			t.Fatalf("%+v", r)
		}
		title, message := r.Data[0], r.Data[1]
		if title.Snippet != "Needles" || title.Role != "" || title.NodeID != "" || string(title.SessionID) != id {
			t.Errorf("%+v", title)
		}
		if message.Snippet != "a needle in a haystack" || message.Role != protocol.RoleUser || message.Title != "Needles" ||
			message.NodeID == "" || message.TurnID == "" || message.AtMs == 0 || message.Cwd == "" || message.UpdatedAtMs == 0 {
			t.Errorf("%+v", message)
		}
	})
}
