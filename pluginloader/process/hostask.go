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

// clock ends a call at its time limit. It stops while a user is asked.
type clock struct {
	limit time.Duration
	timer *time.Timer
	asks  sync.Mutex // held while a user is asked
}

// limited returns a context that ends with child.ErrLate after limit, and the clock that controls
// this. The caller calls the CancelFunc.
func limited(ctx context.Context, limit time.Duration) (context.Context, *clock, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{limit: limit, timer: time.AfterFunc(limit, func() { cancel(child.ErrLate) })}
	return ctx, c, func() {
		cancel(nil)
		c.timer.Stop()
	}
}

// still runs f while the clock is stopped, and then restarts the clock with its whole limit. It
// fails if the time is already up. Calls wait for each other.
func (c *clock) still(f func()) error {
	c.asks.Lock()
	defer c.asks.Unlock()
	if !c.timer.Stop() {
		return errOver
	}
	defer c.timer.Reset(c.limit)
	f()
	return nil
}

// errNoQuestion rejects a question without text.
var errNoQuestion = &paramsError{errors.New("/prompt: is empty")}

// askPerson implements host/ask. It asks the user a question and waits for the answer, at most
// until deadlineMs or the session's own deadline. The call's clock stands still during that time.
// The request works only during a tool call.
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
	var answer protocol.DecisionAnswer
	var err error
	late := g.clock.still(func() {
		answer, err = g.tool.Ask(ctx, tool.Question{Prompt: p.Prompt, Form: p.Form, Deadline: milliseconds(p.DeadlineMs)})
	})
	return &answer, errors.Join(late, err)
}

// milliseconds converts a duration of a plugin. Negative and huge values become maxDeadline.
func milliseconds(n int64) time.Duration {
	if n < 0 || n > int64(maxDeadline/time.Millisecond) {
		return maxDeadline
	}
	return time.Duration(n) * time.Millisecond
}

// maxDeadline stands for no limit.
const maxDeadline = 366 * 24 * time.Hour
