package engine_test

import (
	"testing"

	"lashd/engine"
	"lashd/engine/models"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// costs is a model that takes 2000 tokens, 500 of them from a cache, and gives 100, for a price.
func costs(price *protocol.Price) setup {
	used := &protocol.Usage{Input: 1500, CacheRead: 500, Output: 100, Cost: 7} // what it says of its cost is nothing to us
	model := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok", Usage: used}}}})
	return setup{model: model, config: func(c *engine.Config) { c.Models.(models.Fixed)[0].Price = price }}
}

func TestCost(t *testing.T) {
	cheap := &protocol.Price{Input: 2, Output: 10, Cached: 0.5}
	// 1500 at 2 dollars a million, 500 at half a dollar, 100 at 10: 0.00425 dollars.
	const once = 4_250_000
	t.Run("issue/6-1 report, ledger, session and events show the cost of a turn's tokens", func(t *testing.T) {
		d := start(t, costs(cheap))
		id := d.session(t)
		o := d.observe(t, id)
		report := d.turn(t, id, "go")
		d.turn(t, id, "again")
		must[*protocol.CompletionResult](t)(d.Completions.Create(t.Context(), &protocol.CompletionParams{SessionID: id, Messages: []protocol.Message{protocol.UserMessage(text("x"), nil)}}))
		o.until(func(e protocol.Event) bool { return e.Type == protocol.EventUsageUpdated && e.Total.Cost == 3*once })
		ledger := must[*protocol.UsageReadResult](t)(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{SessionID: id}))
		if report.Usage.Cost != once || report.Calls[0].Usage.Cost != once || ledger.Total.Cost != 3*once {
			t.Errorf("the turn cost %d, its call %+v, all %+v", report.Usage.Cost, report.Calls[0].Usage, ledger.Total)
		}
		if got := must[*protocol.SessionReadResult](t)(d.restart(t, nil).Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.Usage.Cost; got != 3*once {
			t.Errorf("after a restart the session cost %d", got)
		}
	})
	t.Run("issue/6-1 a recorded cost stays when the price changes; without a price the cost is unknown", func(t *testing.T) {
		d := start(t, costs(cheap))
		id := d.session(t)
		d.turn(t, id, "go")
		for _, next := range []struct {
			price *protocol.Price
			sum   int64
		}{{nil, once}, {&protocol.Price{Input: 4, Output: 20, Cached: 1}, 3 * once}} {
			d = d.restart(t, func(s *setup) { s.config = costs(next.price).config })
			d.turn(t, id, "on")
			if got := must[*protocol.UsageReadResult](t)(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{})).Total.Cost; got != next.sum {
				t.Errorf("with %+v all cost %d, want %d", next.price, got, next.sum)
			}
		}
	})
}

func TestPrice(t *testing.T) {
	p := protocol.Price{Input: 1.25, Output: 10, Cached: 0.125}
	for name, row := range map[string]struct {
		usage protocol.Usage
		want  int64
	}{
		"a million of each, of which what is written to a cache is input": {protocol.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6, Reasoning: 5e5}, 12_625_000_000},
		"one token":     {protocol.Usage{CacheRead: 1}, 125},
		"nothing":       {protocol.Usage{}, 0},
		"beyond belief": {protocol.Usage{Input: 1 << 62}, 1_000_000_000_000},
		"below nothing": {protocol.Usage{Input: -5}, 0},
	} {
		t.Run("issue/6-1 the price of "+name, func(t *testing.T) {
			if got := p.Of(row.usage); got != row.want {
				t.Errorf("%d, want %d", got, row.want)
			}
		})
	}
}
