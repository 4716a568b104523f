package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// promptBytes returns a request as bytes.
type promptBytes struct {
	system, tools string
	messages      []string
}

// TestStablePrefix does not check cache breakpoints: no provider protocol that lashd speaks has them.
func TestStablePrefix(t *testing.T) {
	t.Run("runtime/S13 each request of a session begins with the bytes of the previous one, within a turn and across turns", func(t *testing.T) {
		script := scripted.New(&scripted.Script{
			Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "look"}, Replies: []scripted.Reply{calls("look"), calls("look"), {Text: "done"}}}},
			Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}},
		})
		var all []promptBytes
		model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			all = append(all, asSent(t, req))
			for chunk, err := range script.Stream(ctx, req) {
				if !yield(chunk, err) {
					return
				}
			}
		})
		d := start(t, setup{cwd: t.TempDir(), model: model, tools: []tool.Provider{says("look", "seen")}})
		id := d.session(t)
		for _, text := range []string{"look", "and now?", "look again"} {
			if report := d.turn(t, id, text); report.State != protocol.TurnCompleted {
				t.Fatalf("report %+v", report)
			}
		}
		for i, s := range all[1:] {
			before := all[i]
			if s.system != before.system || s.tools != before.tools {
				t.Errorf("the request after %d has another prompt or other tools than the one before", i)
			}
			if len(s.messages) < len(before.messages) || !slices.Equal(s.messages[:len(before.messages)], before.messages) {
				t.Errorf("the request after %d begins with other messages: %s", i, cmp.Diff(before.messages, s.messages))
			}
		}
		if len(all) != 7 {
			t.Errorf("%d requests, want 7", len(all))
		}
	})
}

func asSent(t *testing.T, req *provider.Request) promptBytes {
	encode := func(v any) string { return string(must[[]byte](t)(json.Marshal(v))) }
	s := promptBytes{system: req.System, tools: encode(req.Tools)}
	for _, m := range req.Messages {
		s.messages = append(s.messages, encode(m))
	}
	return s
}
