package process

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// clock ends a call that takes too long. While a person is asked it stands still.
type clock struct {
	limit time.Duration
	timer *time.Timer
	asks  sync.Mutex // held while a person is asked
}

// limited is a context that ends when the time of a call is over.
func limited(ctx context.Context, limit time.Duration) (context.Context, *clock, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{limit: limit, timer: time.AfterFunc(limit, func() { cancel(child.ErrLate) })}
	return ctx, c, func() {
		cancel(nil)
		c.timer.Stop()
	}
}

// still runs f while the clock stands still; then there is as much time as at first.
func (c *clock) still(f func() (protocol.DecisionAnswer, error)) (protocol.DecisionAnswer, error) {
	c.asks.Lock()
	defer c.asks.Unlock()
	if !c.timer.Stop() {
		return protocol.DecisionAnswer{}, errOver
	}
	defer c.timer.Reset(c.limit)
	return f()
}

var errNoQuestion = &paramsError{errors.New("/prompt: is empty")}

func askPerson(ctx context.Context, g *grant, p *struct {
	granted
	Prompt     string          `json:"prompt"`
	Form       json.RawMessage `json:"form,omitempty"`
	DeadlineMs int64           `json:"deadlineMs,omitempty"`
}) (*protocol.DecisionAnswer, error) {
	switch {
	case g.tool == nil:
		return nil, &plugin.UnavailableError{Capability: "questions to a person"}
	case p.Prompt == "":
		return nil, errNoQuestion
	}
	answer, err := g.clock.still(func() (protocol.DecisionAnswer, error) {
		return g.tool.Ask(ctx, tool.Question{Prompt: p.Prompt, Form: p.Form, Deadline: milliseconds(p.DeadlineMs)})
	})
	return &answer, err
}

// milliseconds is a time that a plugin has said; one that is none, or longer than anybody lives, is none.
func milliseconds(n int64) time.Duration {
	if n < 0 || n > int64(maxDeadline/time.Millisecond) {
		return maxDeadline
	}
	return time.Duration(n) * time.Millisecond
}

// maxDeadline is longer than anybody waits for an answer.
const maxDeadline = 366 * 24 * time.Hour
