package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v5"

	"lashd/rpc/protocol"
)

// Policy says how often and how patiently a failed call is tried again. Zero fields mean the defaults.
type Policy struct {
	Attempts      int           // default 4
	Base          time.Duration // wait after the first failure, doubled after each further one; default 2s
	Max           time.Duration // longest of those waits; default 10s
	Jitter        float64       // fraction by which a wait may vary; default 0
	MaxRetryAfter time.Duration // longest wait that a server can ask for; a call that would wait longer fails; default 10min
	DownFor       time.Duration // how long a server that refuses connections is tried again, from its first refusal on; default 3s

	// Waiting for a throttling server uses up this allowance instead of attempts.
	ThrottleBudget time.Duration // default 90s
	ThrottleWaits  int           // default 8
	ThrottleCharge time.Duration // least that a wait costs; default 1s
}

// withDefaults returns the policy with the defaults in place of zero fields.
func (p Policy) withDefaults() Policy {
	return Policy{
		Attempts:       cmp.Or(p.Attempts, 4),
		Base:           cmp.Or(p.Base, 2*time.Second),
		Max:            cmp.Or(p.Max, 10*time.Second),
		Jitter:         p.Jitter,
		MaxRetryAfter:  cmp.Or(p.MaxRetryAfter, 10*time.Minute),
		DownFor:        cmp.Or(p.DownFor, 3*time.Second),
		ThrottleBudget: cmp.Or(p.ThrottleBudget, 90*time.Second),
		ThrottleWaits:  cmp.Or(p.ThrottleWaits, 8),
		ThrottleCharge: cmp.Or(p.ThrottleCharge, time.Second),
	}
}

// Retry is the one place where model calls are tried again. It reports each attempt by Chunk.Attempt and of each wait
// by Chunk.Retry. Once output began a call is not repeated, unless its model is idempotent; then Chunk.Reset withdraws
// what was streamed. A panic of the Provider becomes an *Error, and so does a sequence without an end or longer than a Meter
// allows.
type Retry struct {
	Provider Provider
	Policy   Policy
	Log      *slog.Logger // of panics; optional
}

// Check implements Checker, as far as the Provider does. It is not tried again.
func (r *Retry) Check(ctx context.Context) error {
	if c, ok := r.Provider.(Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

// Stream implements Provider.
func (r *Retry) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		policy := r.Policy.withDefaults()
		c := call{
			retry:    r,
			policy:   policy,
			yield:    yield,
			failures: policy.delays(),
			throttle: policy.delays(),
			down:     policy.delays(),
		}
		c.down.InitialInterval = min(downBase, policy.Base)
		c.run(ctx, *req)
	}
}

// downBase is the first wait for a server that refuses connections: one that is just restarting is back soon.
const downBase = 500 * time.Millisecond

// delays returns waits that begin with Base, double each time, and do not exceed Max, apart from Jitter.
func (p Policy) delays() backoff.ExponentialBackOff {
	return backoff.ExponentialBackOff{
		InitialInterval:     p.Base,
		MaxInterval:         p.Max,
		Multiplier:          2,
		RandomizationFactor: p.Jitter,
	}
}

// call is one Stream, with what its attempts have used up.
type call struct {
	retry    *Retry
	policy   Policy
	yield    func(Chunk, error) bool
	attempts int                        // that count
	failures backoff.ExponentialBackOff // waits after counted attempts

	throttle      backoff.ExponentialBackOff // waits for a throttling server that names no time
	throttleWaits int                        // used of Policy.ThrottleWaits
	throttleSpent time.Duration              // used of Policy.ThrottleBudget

	down      backoff.ExponentialBackOff // waits for a server that refuses connections
	downSince time.Time                  // of the first refusal in a row; zero: the server was last seen up

	heard  bool // in this attempt, a chunk came
	output bool // in any attempt since the last reset, output came
	away   bool // the reader's code runs
	left   bool // the reader wants no more
}

// run makes attempts until the reply is complete, the call has failed for the last time, or the reader leaves.
func (c *call) run(ctx context.Context, req Request) {
	for {
		req.Scope.Attempt++
		if c.output && !c.send(Chunk{Reset: true}) {
			return
		}
		c.heard, c.output = false, false
		done, err := c.try(ctx, &req)
		if done || c.left {
			return
		}
		wait, again := c.failed(ctx, err, req.Model.Idempotent)
		if !again || c.left {
			return
		}
		if !sleep(ctx, wait) {
			c.yield(Chunk{}, Cancelled(ctx))
			return
		}
	}
}

// try makes one attempt. It is done when the whole reply went to the reader.
func (c *call) try(ctx context.Context, req *Request) (done bool, err error) {
	defer func() {
		if c.away {
			return // the panic is the reader's own, and passes
		}
		if p := recover(); p != nil {
			done, err = false, c.contain(req, p)
		}
	}()
	var meter Meter
	for chunk, err := range c.retry.Provider.Stream(ctx, req) {
		if err == nil {
			err = meter.Take(&chunk)
		}
		if err != nil {
			return false, err
		}
		if chunk.Retry != nil { // the attempt waits for admission
			chunk.Retry.Attempt, chunk.Retry.Attempts = c.attempts+1, c.policy.Attempts
		} else {
			c.heard = true
		}
		c.output = c.output || chunk.Text != "" || chunk.Reasoning != "" || chunk.Part != nil
		if chunk.Stop != "" {
			chunk.Attempt = &protocol.CallAttempt{Outcome: protocol.AttemptCompleted, Position: "streaming"}
		}
		if !c.send(chunk) || chunk.Stop != "" {
			return true, nil
		}
	}
	return false, &Error{
		Kind:      KindStream,
		Code:      "ended_without_evidence",
		Message:   "the reply ended without a sign that it is complete",
		Retryable: true,
	}
}

// contain logs a panic of the Provider and returns it as an error, which is not retried.
func (c *call) contain(req *Request, p any) *Error {
	if c.retry.Log != nil {
		c.retry.Log.Error("provider panicked", "provider", req.Model.Provider, "request", req.Scope.RequestID,
			"panic", p, "stack", string(debug.Stack()))
	}
	return &Error{Kind: KindUnknown, Code: "provider_panic", Message: fmt.Sprintf("the provider panicked: %v", p)}
}

// failed reports the attempt, and either the wait before the next one or the error that ends the call.
func (c *call) failed(ctx context.Context, err error, idempotent bool) (time.Duration, bool) {
	if ctx.Err() != nil {
		c.report(err, protocol.CallAttempt{Outcome: protocol.AttemptAborted, Retry: "cancelled"})
		c.fail(Cancelled(ctx))
		return 0, false
	}
	before := c.attempts
	wait, again, why := c.decide(err, idempotent)
	c.report(err, protocol.CallAttempt{Outcome: protocol.AttemptFailed, Retry: why, WaitMs: wait.Milliseconds()})
	if !again {
		c.fail(c.final(err))
		return 0, false
	}
	c.send(Chunk{Retry: c.status(err, wait, c.attempts > before)})
	return wait, true
}

// status describes the wait before the next attempt.
func (c *call) status(err error, wait time.Duration, counted bool) *protocol.RetryStatus {
	r := &protocol.RetryStatus{
		WaitMs: wait.Milliseconds(), Attempt: c.attempts + 1, Attempts: c.policy.Attempts, Counted: counted, Reason: issue(err).Code, Message: issue(err).Message,
	}
	if failure, ok := errors.AsType[*Error](err); ok {
		r.Status = failure.Status
	}
	return r
}

// final is the error that ends the call. It says how long the server asked to be left alone, if that is why.
func (c *call) final(err error) error {
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.RetryAfter <= c.policy.MaxRetryAfter {
		return err
	}
	late := *failure
	late.Message += fmt.Sprintf("; the server asks to wait %v, which is longer than lashd waits (%v): try again then", failure.RetryAfter.Round(time.Second), c.policy.MaxRetryAfter)
	return &late
}

// decide says whether the call is tried again, after which wait, and why.
func (c *call) decide(err error, idempotent bool) (wait time.Duration, again bool, why string) {
	failure, ok := errors.AsType[*Error](err)
	switch {
	case !ok || !failure.Retryable || failure.Stop != "":
		return 0, false, "not retryable"
	case c.output && !idempotent:
		return 0, false, "output began"
	}
	asked := failure.RetryAfter
	if asked > c.policy.MaxRetryAfter {
		return 0, false, "asked to wait too long"
	}
	if failure.Down {
		return c.waitUntilUp()
	}
	c.downSince = time.Time{}
	if failure.Throttled {
		wait = next(asked, &c.throttle)
		if c.charge(wait) {
			return wait, true, "throttled"
		}
	}
	c.attempts++
	if c.attempts >= c.policy.Attempts {
		return 0, false, "attempts used up"
	}
	return next(asked, &c.failures), true, "retryable"
}

// next returns the wait that the server asked for, or the next one of a series if it asked for none.
func next(asked time.Duration, series *backoff.ExponentialBackOff) time.Duration {
	if asked > 0 {
		return asked
	}
	return series.NextBackOff()
}

// waitUntilUp waits for a server that refuses connections, for as long as the policy allows since its first refusal.
func (c *call) waitUntilUp() (wait time.Duration, again bool, why string) {
	if c.downSince.IsZero() {
		c.downSince = time.Now()
		c.down.Reset()
	}
	wait = c.down.NextBackOff()
	if time.Since(c.downSince)+wait > c.policy.DownFor {
		return 0, false, "server is down"
	}
	return wait, true, "server is down"
}

// charge takes a wait from the allowance for throttling, if it fits.
func (c *call) charge(wait time.Duration) bool {
	cost := max(wait, c.policy.ThrottleCharge)
	if c.throttleWaits >= c.policy.ThrottleWaits || c.throttleSpent+cost > c.policy.ThrottleBudget {
		return false
	}
	c.throttleWaits++
	c.throttleSpent += cost
	return true
}

// report sends the end of an attempt, with how far it came.
func (c *call) report(err error, attempt protocol.CallAttempt) {
	if failure, ok := errors.AsType[*Error](err); ok {
		attempt.Status = failure.Status
	}
	switch {
	case c.output:
		attempt.Position = "streaming"
	case c.heard || attempt.Status != 0:
		attempt.Position = "waiting"
	default:
		attempt.Position = "connecting"
	}
	attempt.Error = new(issue(err))
	c.send(Chunk{Attempt: &attempt})
}

// fail ends the sequence with an error unless the reader has left: yield must not be called after that.
func (c *call) fail(err error) {
	if !c.left {
		c.yield(Chunk{}, err)
	}
}

// send gives the reader a chunk and reports whether the reader wants more.
func (c *call) send(chunk Chunk) bool {
	if c.left {
		return false
	}
	c.away = true
	c.left = !c.yield(chunk, nil)
	c.away = false
	return !c.left
}

// issue returns an error as a turn reports it.
func issue(err error) protocol.Issue {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure.Issue()
	}
	return protocol.Issue{Kind: "provider", Code: "unknown", Message: err.Error()}
}

// sleep waits and reports whether the wait ended before ctx did.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
