package plugin

import (
	"context"

	"lashd/engine/provider"
	"lashd/engine/turn"
)

// bounded wraps a driver so that each of its calls has a time limit. turn.Driver methods return no error, so bounded
// panics instead: with a AbandonedError if the driver does not return within shortTimeout or was abandoned before, with a
// PanicError if it panics. The engine recovers both and fails the turn.
type bounded struct {
	s      *Session
	driver Driver
}

// callDriver calls the driver in a goroutine of its own and returns its answer, or panics as bounded describes.
func callDriver[T any](b bounded, ask func() T) T {
	var step step
	step.set(HookDriver, b.s.driver.plugin)
	if b.s.abandoned.has(step.plugin()) {
		panic(step.left(context.Background()))
	}
	done := begin(func() (T, error) { return ask(), nil })
	a, returned := inTime(context.Background(), limits{whole: shortTimeout}, done) // a pure function has no context
	switch {
	case !returned:
		b.s.abandoned.add(step.plugin(), func() { <-done })
		panic(step.left(context.Background()))
	case a.err != nil:
		panic(a.err)
	}
	return a.out
}

// Prepare implements turn.Driver.
func (b bounded) Prepare(v turn.View) []turn.Action {
	return callDriver(b, func() []turn.Action { return b.driver.Prepare(v) })
}

// Reply implements turn.Driver.
func (b bounded) Reply(v turn.View, reply provider.Reply) []turn.Action {
	return callDriver(b, func() []turn.Action { return b.driver.Reply(v, reply) })
}

// Results implements turn.Driver.
func (b bounded) Results(v turn.View, results []turn.ToolReply) []turn.Action {
	return callDriver(b, func() []turn.Action { return b.driver.Results(v, results) })
}

// Cell implements turn.Driver.
func (b bounded) Cell(v turn.View, reply turn.CellReply) []turn.Action {
	return callDriver(b, func() []turn.Action { return b.driver.Cell(v, reply) })
}

// Limit implements turn.Driver.
func (b bounded) Limit(v turn.View) []turn.Action {
	return callDriver(b, func() []turn.Action { return b.driver.Limit(v) })
}

// Visible implements turn.Driver.
func (b bounded) Visible(prose string) string {
	return callDriver(b, func() string { return b.driver.Visible(prose) })
}

// HandlesOutputLimit implements turn.Driver.
func (b bounded) HandlesOutputLimit() bool { return callDriver(b, b.driver.HandlesOutputLimit) }
