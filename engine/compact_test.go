package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

func compactor(id string, priority int, f func(*plugin.CompactRequest) ([]protocol.NodeBody, error)) hooked {
	return hooked{id, func(r *plugin.Registrar) {
		r.Context().Compactor(priority, func(_ context.Context, req *plugin.CompactRequest) ([]protocol.NodeBody, error) { return f(req) })
	}}
}

func summary(text string) []protocol.NodeBody {
	return []protocol.NodeBody{{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}}}
}

func TestCompact(t *testing.T) {
	compact := func(t *testing.T, d *daemon, id protocol.SessionID) *protocol.SessionCompactResult {
		t.Helper()
		return must[*protocol.SessionCompactResult](t)(d.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id, Instructions: "short"}))
	}
	t.Run("plugin/HK-30 runtime/S11 the first summary opens a frame, and the model sees nothing before it", func(t *testing.T) {
		var asked []string
		model := &remembering{Provider: replies(scripted.Reply{Text: "hello"})}
		d := start(t, setup{model: model, plugins: plugins(
			compactor("late", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) {
				asked = append(asked, "late")
				return summary("late"), nil
			}),
			compactor("empty", 3, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) {
				asked = append(asked, "empty")
				return nil, nil
			}),
			compactor("first", 2, func(r *plugin.CompactRequest) ([]protocol.NodeBody, error) {
				asked = append(asked, r.Instructions)
				return summary("we met"), nil
			}),
		)})
		id := d.session(t)
		o := d.observe(t, id)
		d.turn(t, id, "hi")
		done := compact(t, d, id)
		if !done.Compacted || done.Plugin != "first" || !slices.Equal(asked, []string{"empty", "short"}) {
			t.Errorf("%+v, asked %q", done, asked)
		}
		if e := o.typed(protocol.EventSessionCompacted); e.Frame == nil || e.Frame.Reason != "compaction" || e.FrameID != done.Head.Frame {
			t.Errorf("told %+v", e)
		}
		d = d.restart(t, nil)
		d.turn(t, id, "and now?")
		var seen []string
		for _, m := range model.asked[len(model.asked)-1].Messages {
			seen = append(seen, m.Parts[0].Text)
		}
		if !slices.Equal(seen, []string{"we met", "and now?"}) {
			t.Errorf("the model saw %q", seen)
		}
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"hi", "hello", "we met", "and now?", "ok"}) {
			t.Errorf("people see %q", got)
		}
	})
	t.Run("plugin/HK-30 without a summary, or with one that fails, nothing changes", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: plugins(compactor("a", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) { return nil, nil }))})
		id := d.session(t)
		before := d.graph(t, id).Head
		if done := compact(t, d, id); done.Compacted || d.graph(t, id).Head != before {
			t.Errorf("%+v", done)
		}
		d = start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(compactor("a", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) { return nil, errors.New("no") }))})
		id = d.session(t)
		before = d.graph(t, id).Head
		_, err := d.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id})
		if _, ok := errors.AsType[*plugin.OperationError](err); !ok || d.graph(t, id).Head != before {
			t.Errorf("error %v", err)
		}
		if next := d.turn(t, id, "go"); next.State != protocol.TurnCompleted {
			t.Errorf("the next turn ended as %s", next.State)
		}
	})
}
