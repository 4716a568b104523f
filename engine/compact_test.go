package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
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

func keptOf(nodes []protocol.Node) []string {
	return said(slices.DeleteFunc(slices.Clone(nodes), func(n protocol.Node) bool { return !n.Kept }))
}

func TestCompact(t *testing.T) {
	compact := func(t *testing.T, d *daemon, id protocol.SessionID) *protocol.SessionCompactResult {
		t.Helper()
		return must[*protocol.SessionCompactResult](t)(d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id, Instructions: "short"}))
	}
	t.Run("plugin/HK-30 runtime/S11 the first summary opens a frame, and the model sees only what follows", func(t *testing.T) {
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
	t.Run("runtime/S11 people see a message that a compaction kept only where it was first", func(t *testing.T) {
		model := &remembering{Provider: replies(scripted.Reply{Text: "hello"})}
		d := start(t, setup{model: model, plugins: plugins(compactor("a", 1, func(r *plugin.CompactRequest) ([]protocol.NodeBody, error) {
			nodes := summary("we met")
			for _, m := range r.View.Messages()[2:] {
				nodes = append(nodes, protocol.NodeBody{Message: &m})
			}
			return append(nodes, summary("we met again")...), nil
		}))})
		id := d.session(t)
		d.turn(t, id, "hi")
		d.turn(t, id, "once more")
		o := d.observe(t, id)
		compact(t, d, id)
		d.turn(t, id, "and now?")
		o.until(func(e protocol.Event) bool { return e.Item != nil && e.Item.Text == "ok" })
		var told []string
		for _, e := range o.of(protocol.EventItemCompleted) {
			told = append(told, e.Item.Text)
		}
		if !slices.Equal(told, []string{"we met", "we met again", "and now?", "ok"}) {
			t.Errorf("told %q", told)
		}
		if got := texts(model.asked[len(model.asked)-1]); !slices.Equal(got, []string{"we met", "once more", "ok", "we met again", "and now?"}) {
			t.Errorf("the model saw %q", got)
		}
		want := []string{"hi", "hello", "once more", "ok", "", "we met", "we met again", "and now?", "ok"}
		for range 2 {
			read := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
			if got := itemTexts(protocol.SnapshotSide{Items: read.Data}); !slices.Equal(got, want) {
				t.Errorf("people see %q, want %q", got, want)
			}
			d = d.restart(t, nil)
		}
		if got := keptOf(d.graph(t, id).Data); !slices.Equal(got, []string{"once more", "ok"}) {
			t.Errorf("marked as kept: %q", got)
		}
	})
	t.Run("plugin/HK-30 a frame may start with calls and their results, but not with a call alone", func(t *testing.T) {
		for name, keep := range map[string]int{"all": 4, "a call without its result": 3} {
			d := start(t, setup{model: replies(calls("look"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("look", "fine")}, plugins: plugins(
				compactor("a", 1, func(r *plugin.CompactRequest) (nodes []protocol.NodeBody, err error) {
					for _, m := range r.View.Messages()[:min(keep-1, len(r.View.Messages()))] {
						nodes = append(nodes, protocol.NodeBody{Message: &m})
					}
					return nodes, nil
				}),
			)})
			id := d.session(t)
			d.turn(t, id, "go")
			o := d.observe(t, id)
			done, err := d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id})
			if name != "all" {
				if err == nil {
					t.Errorf("%s: compacted", name)
				}
				continue
			}
			if err != nil || !done.Compacted {
				t.Fatalf("%+v, %v", done, err)
			}
			if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s %+v", next.State, next.Issues)
			}
			if e := o.typed(protocol.EventItemCompleted); e.Item.Text != "and?" {
				t.Errorf("told %+v", e.Item)
			}
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
		_, err := d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id})
		if _, ok := errors.AsType[*plugin.OperationError](err); !ok || d.graph(t, id).Head != before {
			t.Errorf("error %v", err)
		}
		if next := d.turn(t, id, "go"); next.State != protocol.TurnCompleted {
			t.Errorf("the next turn ended as %s", next.State)
		}
	})
}

func TestAutomaticCompaction(t *testing.T) {
	t.Run("runtime/S11 plugin/HK-30 a compaction that a plugin requests runs before the next turn, even a queued one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := &remembering{Provider: replies(scripted.Reply{Text: "hello", DelayMs: 1000})}
			wants := true
			d := start(t, setup{model: model, plugins: plugins(
				compactor("sum", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) {
					time.Sleep(time.Second)
					return summary("we met"), nil
				}),
				hooked{"full", func(r *plugin.Registrar) {
					r.Turn().After(func(_ context.Context, s *plugin.TurnSummary) ([]plugin.Directive, error) {
						if !wants {
							return nil, nil
						}
						wants = false
						return []plugin.Directive{plugin.Compact()}, nil
					})
				}},
			)})
			id := d.session(t)
			d.begin(t, id, "hi")
			d.wait(t, d.begin(t, id, "and now?").TurnID)
			if got := texts(model.asked[1]); !slices.Equal(got, []string{"we met", "and now?"}) {
				t.Errorf("the model saw %q", got)
			}
		})
	})
	t.Run("runtime/S11 plugin/HK-30 a failed compaction is reported, and the session continues", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "hello"}), plugins: plugins(
			compactor("sum", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) { return nil, errors.New("no") }),
			afterTurn("full", plugin.Compact()),
		)})
		id := d.session(t)
		o := d.observe(t, id)
		d.turn(t, id, "hi")
		if e := o.typed(protocol.EventPluginStatus); e.Name != "compaction_failed" || len(e.Issues) != 1 {
			t.Errorf("told %+v", e)
		}
		if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
			t.Errorf("the next turn ended as %s", next.State)
		}
	})
	t.Run("runtime/S11 stopping the daemon during a compaction changes nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies(scripted.Reply{Text: "hello"}), plugins: plugins(
				hooked{"sum", func(r *plugin.Registrar) {
					r.Context().Compactor(1, func(ctx context.Context, _ *plugin.CompactRequest) ([]protocol.NodeBody, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					})
				}},
				afterTurn("full", plugin.Compact()),
			)})
			id := d.session(t)
			d.turn(t, id, "hi")
			synctest.Wait()
			d = d.restart(t, nil)
			if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"hi", "hello"}) {
				t.Errorf("history has %q", got)
			}
		})
	})
	t.Run("runtime/S11 plugin/HK-30 interrupting the requesting turn cancels the compaction", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies(scripted.Reply{Text: "hello"}), plugins: plugins(
				hooked{"sum", func(r *plugin.Registrar) {
					r.Context().Compactor(1, func(ctx context.Context, _ *plugin.CompactRequest) ([]protocol.NodeBody, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					})
				}},
				afterTurn("full", plugin.Compact()),
			)})
			id := d.session(t)
			o := d.observe(t, id)
			turn := d.begin(t, id, "hi").TurnID
			d.wait(t, turn)
			next := d.begin(t, id, "and?").TurnID
			synctest.Wait()
			began := time.Now()
			if got := d.interrupt(t, turn); got != protocol.InterruptRequested {
				t.Errorf("the interrupt was %s", got)
			}
			if e := o.typed(protocol.EventPluginStatus); e.Name != "compaction_failed" || !strings.Contains(e.Text, "enough") {
				t.Errorf("told %+v", e)
			}
			if report := d.wait(t, next); report.State != protocol.TurnCompleted || time.Since(began) > time.Second {
				t.Errorf("the next turn ended as %s after %v", report.State, time.Since(began))
			}
			d.interrupt(t, next)
			synctest.Wait()
			if got := d.interrupt(t, next); got != protocol.InterruptTooLate {
				t.Errorf("the second interrupt was %s", got)
			}
		})
	})
}
