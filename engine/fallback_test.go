package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"lashd/engine"
	"lashd/engine/models"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// refuses is a model whose every call fails, and counts them.
func refuses(e provider.Error, calls *atomic.Int32) provider.Provider {
	return modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
		calls.Add(1)
		_ = yield(provider.Chunk{Attempt: &protocol.CallAttempt{Outcome: protocol.AttemptFailed, Status: e.Status}}, nil) && yield(provider.Chunk{}, &e)
	})
}

// twoModels has a first model that falls back to the second, which costs a dollar a million tokens.
func twoModels(first, second provider.Provider) setup {
	return setup{config: func(c *engine.Config) {
		c.Models = models.Fixed{
			{Name: "first", Spec: protocol.ModelSpec{Provider: "a", ID: "one"}, Provider: first, Price: &protocol.Price{Input: 1000, Output: 1000}, Fallback: "second"},
			{Name: "second", Spec: protocol.ModelSpec{Provider: "b", ID: "two"}, Provider: second, Price: &protocol.Price{Input: 1, Output: 1}, Fallback: "first"},
		}
	}}
}

var overloaded = provider.Error{Kind: provider.KindHTTP, Code: "overloaded_error", Message: "the server is overloaded", Status: 529, Retryable: true}

func TestFallback(t *testing.T) {
	hi := []scripted.Reply{{Text: "hi from two", Usage: &protocol.Usage{Input: 1000, Output: 1000}}}

	t.Run("part9/fallback the second model answers, and the transcript says so", func(t *testing.T) {
		var first atomic.Int32
		var seen *provider.Request
		d := start(t, twoModels(refuses(overloaded, &first), modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			seen = req
			for chunk, err := range replies(hi...).Stream(ctx, req) {
				if !yield(chunk, err) {
					return
				}
			}
		})))
		id := d.session(t)
		o := d.observe(t, id)
		r := d.turn(t, id, "go")
		if r.State != protocol.TurnCompleted || r.Output.Safe != "hi from two" || first.Load() != 1 {
			t.Fatalf("the turn ended as %s with %q after %d calls of the first model", r.State, r.Output.Safe, first.Load())
		}
		if len(r.Calls) != 2 || r.Calls[0].Model != "one" || r.Calls[0].Attempts[0].Status != 529 || r.Calls[1].Model != "two" {
			t.Errorf("calls are %+v", r.Calls)
		}
		if r.Usage.Cost != 2_000_000 || seen.Model.ID != "two" {
			t.Errorf("cost %d, model asked %s", r.Usage.Cost, seen.Model.ID)
		}
		const notice = "one did not answer: the server is overloaded. The rest of this turn uses second."
		shown := o.until(func(e protocol.Event) bool {
			return e.Type == protocol.EventItemCompleted && e.Item.Kind == protocol.ItemNotice
		})
		if got := shown; got.Item.Text != notice || got.Seq == 0 {
			t.Errorf("the notice is %+v", got.Item)
		}
	})

	t.Run("part9/fallback it lasts for the turn, and the next turn asks the first model again", func(t *testing.T) {
		var first atomic.Int32
		s := twoModels(refuses(overloaded, &first), replies(calls("look"), scripted.Reply{Text: "done"}))
		s.tools = append(s.tools, says("look", "seen"))
		d := start(t, s)
		id := d.session(t)
		if r := d.turn(t, id, "go"); r.State != protocol.TurnCompleted || len(r.Calls) != 3 || first.Load() != 1 {
			t.Errorf("the turn ended as %s after %d calls, %d of the first model", r.State, len(r.Calls), first.Load())
		}
		if d.turn(t, id, "again"); first.Load() != 2 {
			t.Errorf("%d calls of the first model, want 2", first.Load())
		}
	})

	t.Run("part9/fallback a second failure ends the turn: there is no circle", func(t *testing.T) {
		var first, second atomic.Int32
		d := start(t, twoModels(refuses(overloaded, &first), refuses(overloaded, &second)))
		r := d.turn(t, d.session(t), "go")
		if r.Outcome.Kind != protocol.OutcomeProviderError || first.Load() != 1 || second.Load() != 1 || len(r.Calls) != 2 {
			t.Errorf("the turn ended as %s after %d and %d calls", r.Outcome.Kind, first.Load(), second.Load())
		}
	})

	t.Run("part9/fallback only failures that another model may not share lead to it", func(t *testing.T) {
		for want, failures := range map[int32][]provider.Error{
			1: {
				overloaded, {Kind: provider.KindTransport, Code: "connect_failed", Down: true}, {Kind: provider.KindQuota, Code: "insufficient_quota", Status: 429},
				{Kind: provider.KindAuth, Code: "missing_key"}, {Kind: provider.KindValidation, Code: "not_found", Status: 404}, {Kind: provider.KindTimeout, Code: "request_timeout"},
				{Kind: provider.KindHTTP, Code: "slow_down", Status: 429, Retryable: true, Throttled: true}, {Kind: provider.KindStream, Code: "stream_broken", Retryable: true},
			},
			0: {
				{Kind: provider.KindValidation, Code: "bad_request", Status: 400}, {Kind: provider.KindValidation, Code: "context_length_exceeded", Stop: protocol.StopContextLimit},
				{Kind: provider.KindValidation, Code: "content_filter", Stop: protocol.StopContentFilter}, {Kind: provider.KindUnknown, Code: "provider_panic"},
				{Kind: provider.KindStream, Code: "reply_too_long"}, {Kind: provider.KindUnsupported, Code: "not_implemented", Status: 501},
			},
		} {
			for _, failure := range failures {
				var first, second atomic.Int32
				d := start(t, twoModels(refuses(failure, &first), refuses(overloaded, &second)))
				d.turn(t, d.session(t), "go")
				if first.Load() != 1 || second.Load() != want {
					t.Errorf("after %s there were %d calls of the second model, want %d", failure.Code, second.Load(), want)
				}
				d.stop()
			}
		}
	})

	t.Run("part9/fallback a reply that began is never replaced", func(t *testing.T) {
		var second atomic.Int32
		d := start(t, twoModels(modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			_ = yield(provider.Chunk{Text: "half"}, nil) && yield(provider.Chunk{}, &overloaded)
		}), refuses(overloaded, &second)))
		if r := d.turn(t, d.session(t), "go"); r.Outcome.Kind != protocol.OutcomeProviderError || second.Load() != 0 {
			t.Errorf("the turn ended as %s after %d calls of the second model", r.Outcome.Kind, second.Load())
		}
	})

	t.Run("part9/fallback after a crash between the two the first model is not asked again", func(t *testing.T) {
		var first atomic.Int32
		asked := make(chan struct{}, 1)
		d := start(t, twoModels(refuses(overloaded, &first), modelFunc(func(ctx context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			asked <- struct{}{}
			<-ctx.Done()
			yield(provider.Chunk{}, provider.Cancelled(ctx))
		})))
		turn := d.begin(t, d.session(t), "go")
		<-asked
		d = d.restart(t, func(s *setup) { s.config = twoModels(refuses(overloaded, &first), replies(hi...)).config })
		r := d.wait(t, turn.TurnID)
		if r.State != protocol.TurnCompleted || first.Load() != 1 || len(r.Calls) != 2 {
			t.Errorf("the turn ended as %s after %d calls of the first model: %+v", r.State, first.Load(), r.Calls)
		}
		var notices []string
		for _, node := range must[*protocol.GraphReadResult](t)(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: r.SessionID})).Data {
			if m := node.Message; m != nil && m.Text(protocol.PartError) != "" {
				notices = append(notices, m.Text(protocol.PartError))
			}
		}
		if len(notices) != 1 || !strings.HasPrefix(notices[0], "one did not answer") {
			t.Errorf("notices are %q", notices)
		}
	})
}
