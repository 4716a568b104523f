package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// The limits of a Breaker.
const (
	breakerCalls = 3               // calls in a row that found no server
	breakerPause = 5 * time.Second // for which further calls fail at once
)

// Breaker fails calls at once while a server is known to be dead. Three calls in a row that found nothing at the server's address, each
// after its retries, open it for five seconds. Then one call is let through: it closes the breaker or opens it again. It belongs above a
// Retry and is shared by all models of a server. The zero values of its private fields are ready.
type Breaker struct {
	Provider Provider

	mu     sync.Mutex
	failed int       // calls in a row that found no server
	until  time.Time // when it lets a call through; zero: it is closed
	probe  bool      // that call is running
	last   *Error    // of the newest of those calls
}

// NewBreaker returns a Breaker for retried calls. A policy that waits for a dead server for longer than the breaker pauses gets none:
// each call then waits as its configuration asks.
func NewBreaker(r *Retry) Provider {
	if r.Policy.withDefaults().DownFor > breakerPause {
		return r
	}
	return &Breaker{Provider: r}
}

// Check implements Checker, as far as the Provider does. A server that answers closes the breaker.
func (b *Breaker) Check(ctx context.Context) error {
	c, ok := b.Provider.(Checker)
	if !ok {
		return nil
	}
	err := c.Check(ctx)
	if err == nil {
		b.ended(nil, false)
	}
	return err
}

// Stream implements Provider.
// A refused call fails with the newest failure's text and the code server_down.
func (b *Breaker) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		probe, refusal := b.begin()
		if refusal != nil {
			yield(Chunk{}, refusal)
			return
		}
		failure := errUnknownEnd
		defer func() { b.ended(failure, probe) }()
		for chunk, err := range b.Provider.Stream(ctx, req) {
			if err != nil || chunk.Stop != "" {
				failure = err
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// errUnknownEnd stands for a call that the reader left: it says nothing about the server.
var errUnknownEnd = errors.New("the reader left")

// begin returns the error of a call that must not be made, or reports whether the call is the one that tries the server.
func (b *Breaker) begin() (probe bool, refusal error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := time.Until(b.until)
	switch {
	case b.until.IsZero():
		return false, nil
	case wait <= 0 && !b.probe: // the pause is over and no other call tries the server
		b.probe = true
		return true, nil
	}
	e := *b.last
	e.Code, e.Retryable = "server_down", false
	e.Message = fmt.Sprintf("%s; the last %d calls found no server, so lashd does not call it %s", e.Message, b.failed, again(wait))
	return false, &e
}

// again says when a server is called again.
func again(wait time.Duration) string {
	if wait <= 0 {
		return "until the call that is trying it now has ended"
	}
	return fmt.Sprintf("for %v, until %s", cmp.Or(wait.Round(time.Second), time.Second), time.Now().Add(wait).Format(time.TimeOnly))
}

// ended takes the end of a call: nil or an error. A cancelled call and one that its reader left change nothing, except that
// another call may try the server.
func (b *Breaker) ended(err error, probe bool) {
	failure, _ := errors.AsType[*Error](err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probe = false
	}
	switch {
	case errors.Is(err, errUnknownEnd), errors.Is(err, context.Canceled), failure != nil && failure.Code == "cancelled":
	case failure == nil || !failure.Down:
		b.failed, b.until, b.last = 0, time.Time{}, nil
	default:
		b.last = failure
		if b.failed++; b.failed >= breakerCalls {
			b.until = time.Now().Add(breakerPause)
		}
	}
}
