package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// changing is a model whose script changes between turns.
type changing struct{ provider.Provider }

func (c *changing) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return c.Provider.Stream(ctx, req)
}

func TestLiveIsReplay(t *testing.T) {
	t.Run("reliability/P11 the log replays byte for byte the events that a live subscriber received", func(t *testing.T) {
		odd := rapid.SampledFrom([]string{"plain", "<b>&\u2028\u00e9\"\\", "\xff\xfe broken", "tab\tline\n", "\u0000"})
		args := rapid.SampledFrom([]string{`{}`, `{ "a" : [1, 2] }`, `{"<": "\u003c\u00e9"}`, `not json`, ``})
		model := &changing{}
		var out protocol.ToolOutput
		echo := toolFunc{name: "echo", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			return tool.Result{Output: out}, nil
		}}
		d := start(t, setup{model: model, tools: []tool.Provider{echo}})
		seen := map[protocol.SessionID][]string{}
		replayed := func(id protocol.SessionID, until protocol.TurnID) []string {
			o := d.observe(t, id, 0)
			defer o.sub.Close()
			o.over(until)
			return o.durable()
		}
		turns := map[protocol.SessionID]protocol.TurnID{}
		rapid.Check(t, func(rt *rapid.T) {
			var script []scripted.Reply
			for range rapid.IntRange(0, 3).Draw(rt, "batches") {
				reply := scripted.Reply{Reasoning: odd.Draw(rt, "reasoning"), Text: odd.Draw(rt, "text"), ChunkSize: rapid.IntRange(0, 3).Draw(rt, "chunk")}
				for i := range rapid.IntRange(1, 3).Draw(rt, "calls") {
					reply.ToolCalls = append(reply.ToolCalls, scripted.Call{ID: protocol.CallID(fmt.Sprint("c", i)), Name: "echo", Args: json.RawMessage(args.Draw(rt, "args"))})
				}
				script = append(script, reply)
			}
			model.Provider = replies(append(script, scripted.Reply{Text: odd.Draw(rt, "answer")})...)
			out = protocol.ToolOutput{Text: odd.Draw(rt, "output"), Value: json.RawMessage(args.Draw(rt, "value"))}
			id := d.session(t)
			live := d.observe(t, id)
			defer live.sub.Close()
			report := d.turn(t, id, strings.ToValidUTF8(odd.Draw(rt, "input"), "?"))
			live.over(report.TurnID)
			live.gapless(0)
			seen[id], turns[id] = live.durable(), report.TurnID
			if got := replayed(id, report.TurnID); !slices.Equal(got, seen[id]) {
				rt.Fatalf("replayed\n%s\nlive\n%s", strings.Join(got, "\n"), strings.Join(seen[id], "\n"))
			}
		})
		d = d.restart(t, nil)
		for id, want := range seen {
			if got := replayed(id, turns[id]); !slices.Equal(got, want) {
				t.Fatalf("replayed after a restart\n%s\nlive\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

func TestSlowObserver(t *testing.T) {
	long := strings.Repeat("0123456789", 4000)
	t.Run("reliability/P16 a subscriber that falls behind gets every durable event once and the whole text", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGate("work")
			first := calls("work")
			first.Text, first.ChunkSize = long, 1
			d := start(t, setup{model: replies(first, scripted.Reply{Text: long, ChunkSize: 1, Stall: true}), tools: []tool.Provider{g}})
			id := d.session(t)
			o := d.observe(t, id)
			turn := d.begin(t, id, "go").TurnID
			o.typed(protocol.EventItemDelta) // the subscriber has seen the item start
			<-g.called
			close(g.open)
			time.Sleep(time.Second) // the second reply is complete, and the subscriber has read nothing of it
			synctest.Wait()
			late := d.observe(t, id)
			o.until(func(e protocol.Event) bool {
				return e.Type == protocol.EventItemDelta && e.ItemID == late.first.OpenItems[0].ID
			})
			d.interrupt(t, turn)
			o.over(turn)
			late.over(turn)
			o.gapless(0)
			late.gapless(late.first.Seq)
			if n := len(o.of(protocol.EventItemDelta)); n >= 2*len(long) {
				t.Errorf("%d deltas: the observer was never behind", n)
			}
			texts := map[protocol.ItemID]string{}
			for _, e := range o.all {
				if e.Type == protocol.EventItemDelta {
					if have := len(texts[e.ItemID]); *e.Offset != have {
						t.Fatalf("a delta of %s at %d, after %d bytes", e.ItemID, *e.Offset, have)
					}
					texts[e.ItemID] += e.Text
				}
			}
			open := late.first.OpenItems
			if len(open) != 1 || open[0].Text != long || texts[open[0].ID] != long {
				t.Errorf("%d open items for a late observer; the slow one was shown %d bytes", len(open), len(texts[open[0].ID]))
			}
			kept := d.itemIDs(t, id)
			if shown := shownItems(o.all); !slices.Equal(shown, kept) {
				t.Errorf("an observer is left with items %v, history has %v", shown, kept)
			}
			var snapshot []protocol.Event
			for _, item := range append(late.first.Items, open...) {
				snapshot = append(snapshot, protocol.Event{Type: protocol.EventItemStarted, Item: &item})
			}
			if shown := shownItems(append(snapshot, late.all...)); !slices.Equal(shown, kept) || len(late.first.Items) != 3 {
				t.Errorf("a late observer has items %v, history has %v; its snapshot had %d", shown, kept, len(late.first.Items))
			}
		})
	})
	t.Run("runtime/T21 a subscriber that was behind learns of a withdrawal it missed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := modelFunc(func(_ context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
				if req.Scope.Attempt == 1 { // two items; the second attempt has only one
					yield(provider.Chunk{Reasoning: "hm"}, nil)
					yield(provider.Chunk{Text: "at first"}, nil)
					yield(provider.Chunk{}, &provider.Error{Kind: provider.KindStream, Code: "cut", Retryable: true})
					return
				}
				for range 40_000 {
					yield(provider.Chunk{Text: "x"}, nil)
				}
				yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
			})
			d := start(t, setup{model: &provider.Retry{Provider: model}, config: idempotentModel})
			id := d.session(t)
			o := d.observe(t, id)
			turn := d.begin(t, id, "go").TurnID
			o.until(func(e protocol.Event) bool { return e.Text == "at first" })
			d.wait(t, turn)
			o.over(turn)
			o.gapless(0)
			if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) {
				t.Errorf("an observer is left with items %v, history has %v", shown, kept)
			}
		})
	})
	t.Run("reliability/P16 a subscriber that joins in the middle and then falls behind gets the rest once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			goOn := make(chan struct{})
			model := modelFunc(func(_ context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
				yield(provider.Chunk{Text: "the beginning"}, nil)
				<-goOn
				for range 40_000 {
					yield(provider.Chunk{Text: "x"}, nil)
				}
				<-goOn
				yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
			})
			d := start(t, setup{model: model})
			id := d.session(t)
			turn := d.begin(t, id, "go").TurnID
			synctest.Wait()
			o := d.observe(t, id)
			goOn <- struct{}{}
			synctest.Wait()
			var rest strings.Builder
			first := o.typed(protocol.EventItemDelta)
			goOn <- struct{}{}
			o.over(turn)
			for _, e := range o.of(protocol.EventItemDelta) {
				rest.WriteString(e.Text)
			}
			if open := o.first.OpenItems; len(open) != 1 || open[0].Text != "the beginning" || *first.Offset != len(open[0].Text) || rest.String() != strings.Repeat("x", 40_000) {
				t.Errorf("open %+v, then %d bytes from %d", open, len(rest.String()), *first.Offset)
			}
			if begun := o.of(protocol.EventItemStarted); len(begun) != 0 {
				t.Errorf("an item that was open began again: %+v", begun)
			}
		})
	})
}
