package provider

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"lashd/rpc/protocol"
)

// Limits bounds the calls that one provider gets. A zero field sets no limit, except Window.
type Limits struct {
	Concurrency int           // calls at the same time
	Requests    int           // calls begun in a window
	Tokens      int64         // tokens of the calls begun in a window, without those read from a cache
	Window      time.Duration // default 1min
}

// limited reports whether there is any limit.
func (l Limits) limited() bool { return l.Concurrency > 0 || l.Requests > 0 || l.Tokens > 0 }

// Admission keeps the calls of a Provider within limits. Calls that have to wait are admitted in the order in which they came. A call
// that waits says so with one Chunk.Retry of the reason protocol.RetryAdmission. It belongs below a Retry, so that each attempt is
// admitted and a wait counts as none.
type Admission struct {
	provider Provider // below, without limits
	limits   Limits   // with the default Window

	mu      sync.Mutex
	running int         // calls admitted and not yet ended
	begun   []*admitted // in the window, oldest first
	queue   []*admitted // waiting, oldest first
	timer   *time.Timer // admits the head of the queue when the window has room again; nil: none
}

// admitted is one call, from when it asks to be admitted until it leaves the window.
type admitted struct {
	ready  chan struct{} // closed once it is admitted
	at     time.Time     // when it was admitted
	tokens int64         // an estimate until the call reports its usage
}

// NewAdmission returns the provider with limits. Without any limit it returns the provider itself.
func NewAdmission(p Provider, limits Limits) Provider {
	if !limits.limited() {
		return p
	}
	if limits.Window <= 0 {
		limits.Window = time.Minute
	}
	return &Admission{provider: p, limits: limits}
}

// Check implements Checker, as far as the Provider does. It needs no admission.
func (a *Admission) Check(ctx context.Context) error {
	if c, ok := a.provider.(Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

// Stream implements Provider.
// The call leaves when its reader is done, so a reader that stays between chunks keeps its place.
func (a *Admission) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		call, status := a.enter(req)
		defer a.leave(call)
		if status != nil && !yield(Chunk{Retry: status}, nil) {
			return
		}
		select {
		case <-call.ready: // closed by admitLocked on the goroutine of any call, or of the timer
		case <-ctx.Done():
			yield(Chunk{}, Cancelled(ctx))
			return
		}
		for chunk, err := range a.provider.Stream(ctx, req) {
			if chunk.Usage != nil {
				a.settle(call, chunk.Usage)
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// enter adds a call to the end of the queue and admits it if it can. The status says why it has to wait; nil: it was admitted.
func (a *Admission) enter(req *Request) (*admitted, *protocol.RetryStatus) {
	call := &admitted{ready: make(chan struct{}), tokens: estimate(req)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(a.queue, call)
	a.admitLocked()
	if !call.at.IsZero() {
		return call, nil
	}
	wait, why := a.blockedLocked(a.queue[0])
	return call, &protocol.RetryStatus{
		WaitMs: wait.Milliseconds(), Reason: protocol.RetryAdmission,
		Message: fmt.Sprintf("%s allows %s; %d waiting", req.Model.Provider, why, len(a.queue)),
	}
}

// leave ends a call, admitted or not, and admits those that it held up.
func (a *Admission) leave(call *admitted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if call.at.IsZero() {
		a.queue = without(a.queue, call)
	} else {
		a.running--
	}
	a.admitLocked()
}

// without returns the calls of a list except one.
func without(calls []*admitted, out *admitted) []*admitted {
	var rest []*admitted
	for _, c := range calls {
		if c != out {
			rest = append(rest, c)
		}
	}
	return rest
}

// settle replaces the estimate of a call by what it used.
// Tokens read from a cache do not count.
func (a *Admission) settle(call *admitted, u *protocol.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	call.tokens = u.Input + u.CacheWrite + u.Output
	a.admitLocked()
}

// admitLocked admits calls from the head of the queue as long as they fit. If the window is what holds the head up, a timer tries again.
func (a *Admission) admitLocked() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	for len(a.queue) > 0 {
		head := a.queue[0]
		wait, why := a.blockedLocked(head)
		if why != "" {
			a.retryLocked(wait)
			return
		}
		a.queue = a.queue[1:]
		a.running++
		head.at = time.Now()
		a.begun = append(a.begun, head)
		close(head.ready)
	}
}

// retryLocked looks at the queue again after a wait; 0 means that the end of a call does so.
func (a *Admission) retryLocked(wait time.Duration) {
	if wait <= 0 {
		return
	}
	a.timer = time.AfterFunc(wait, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.admitLocked()
	})
}

// blockedLocked returns which limit a call would exceed now, "" for none, and how long until the window has room for it. The wait is 0 if a
// running call has to end first. A call that is larger than the whole limit is admitted to an empty window: it would wait for ever.
func (a *Admission) blockedLocked(call *admitted) (time.Duration, string) {
	now := time.Now()
	for len(a.begun) > 0 && now.Sub(a.begun[0].at) >= a.limits.Window {
		a.begun = a.begun[1:]
	}
	if a.limits.Concurrency > 0 && a.running >= a.limits.Concurrency {
		return 0, fmt.Sprintf("%d calls at the same time", a.limits.Concurrency)
	}
	if n := a.limits.Requests; n > 0 && len(a.begun) >= n {
		return a.freeLocked(len(a.begun)-n, now), fmt.Sprintf("%d calls in %v", n, a.limits.Window)
	}
	if last := a.overTokensLocked(call); last >= 0 {
		return a.freeLocked(last, now), fmt.Sprintf("%d tokens in %v", a.limits.Tokens, a.limits.Window)
	}
	return 0, ""
}

// freeLocked returns how long until the call of an index has left the window.
func (a *Admission) freeLocked(index int, now time.Time) time.Duration {
	return a.begun[index].at.Add(a.limits.Window).Sub(now)
}

// overTokensLocked returns the index of the call whose leaving makes room for the tokens of another one; -1 if there is room.
func (a *Admission) overTokensLocked(call *admitted) int {
	if a.limits.Tokens <= 0 {
		return -1
	}
	sum := call.tokens
	for _, b := range a.begun {
		sum += b.tokens
	}
	last := -1
	for i, b := range a.begun {
		if sum <= a.limits.Tokens {
			break
		}
		sum -= b.tokens
		last = i
	}
	return last
}

// estimate guesses the tokens of a request from the length of its texts and from its attachments. The usage that the server reports
// replaces it.
func estimate(req *Request) int64 {
	size, tokens := len(req.System), int64(0)
	for _, m := range req.Messages {
		for i := range m.Parts {
			tokens += m.Parts[i].EstimatedTokens()
		}
	}
	for i := range req.Tools {
		size += len(req.Tools[i].Description) + len(req.Tools[i].Input)
	}
	return int64(size/protocol.BytesPerToken) + tokens
}
