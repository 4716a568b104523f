package provider_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// clerk is a Provider whose calls take a second. It notes when each begins, by the id of its model.
type clerk struct {
	usage protocol.Usage // of each call

	mu      sync.Mutex
	began   []string
	running int
	most    int
}

func (c *clerk) Stream(_ context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		c.mu.Lock()
		c.running++
		c.most = max(c.most, c.running)
		c.began = append(c.began, fmt.Sprintf("%s at %v", req.Model.ID, clock()))
		c.mu.Unlock()
		time.Sleep(time.Second) // virtual
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
		_ = yield(provider.Chunk{Usage: &c.usage}, nil) && yield(provider.Chunk{Text: "hi", Stop: protocol.StopEnd}, nil)
	}
}

// clock is the time since a bubble began.
func clock() time.Duration { return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) }

// ask makes calls of these names, one after another in the same instant, and waits for all of them.
func ask(t *testing.T, p provider.Provider, names ...string) map[string]played {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	all := map[string]played{}
	for _, name := range names {
		group.Go(func() {
			got := play(t.Context(), p, protocol.ModelSpec{Provider: "acme", ID: name})
			mu.Lock()
			defer mu.Unlock()
			all[name] = got
		})
		synctest.Wait()
	}
	group.Wait()
	return all
}

func TestAdmission(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits provider.Limits
		usage  protocol.Usage
		began  []string
	}{
		{"runtime/M09 calls at the same time are limited, and the rest go in the order in which they came", provider.Limits{Concurrency: 2}, protocol.Usage{},
			[]string{"a at 0s", "b at 0s", "c at 1s", "d at 1s", "e at 2s"}},
		{"runtime/M09 calls in a window are limited", provider.Limits{Requests: 2, Window: 10 * time.Second}, protocol.Usage{},
			[]string{"a at 0s", "b at 0s", "c at 10s", "d at 10s", "e at 20s"}},
		{"runtime/M09 tokens in a window are limited by what calls really used", provider.Limits{Tokens: 100, Concurrency: 1}, protocol.Usage{Input: 50, Output: 10, CacheRead: 5000},
			[]string{"a at 0s", "b at 1s", "c at 1m0s", "d at 1m1s", "e at 2m0s"}},
		{"runtime/M09 a call above the whole limit is not kept for ever", provider.Limits{Tokens: 1, Concurrency: 1}, protocol.Usage{Input: 9},
			[]string{"a at 0s", "b at 1m0s", "c at 2m0s", "d at 3m0s", "e at 4m0s"}},
		{"runtime/M09 without limits nothing waits", provider.Limits{}, protocol.Usage{},
			[]string{"a at 0s", "b at 0s", "c at 0s", "d at 0s", "e at 0s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &clerk{usage: c.usage}
				ask(t, &provider.Retry{Provider: provider.NewAdmission(k, c.limits)}, "a", "b", "c", "d", "e")
				slices.SortStableFunc(k.began, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
				if !slices.Equal(k.began, c.began) {
					t.Errorf("calls began %q, want %q", k.began, c.began)
				}
			})
		})
	}

	t.Run("runtime/M09 a call that waits says why, and its wait is no attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &provider.Retry{Provider: provider.NewAdmission(&clerk{}, provider.Limits{Requests: 1, Window: 30 * time.Second})}
			var first *protocol.RetryStatus
			play(t.Context(), p, protocol.ModelSpec{Provider: "acme"})
			var c provider.Collector
			for chunk, err := range p.Stream(t.Context(), &provider.Request{Model: protocol.ModelSpec{Provider: "acme"}}) {
				if err != nil {
					t.Fatal(err)
				}
				if chunk.Retry != nil {
					first = chunk.Retry
				}
				c.Add(&chunk)
			}
			want := protocol.RetryStatus{WaitMs: 29000, Attempt: 1, Attempts: 4, Reason: "admission", Message: "acme allows 1 calls in 30s; 1 waiting"}
			if first == nil || *first != want {
				t.Errorf("status is %+v, want %+v", first, want)
			}
			if text := "the model call waits: acme allows 1 calls in 30s; 1 waiting"; first.String() != text {
				t.Errorf("clients show %q, want %q", first, text)
			}
			if a := c.Reply().Attempts; len(a) != 1 || a[0].Outcome != protocol.AttemptCompleted {
				t.Errorf("attempts are %+v, want one that completed", a)
			}
		})
	})

	t.Run("runtime/M09 a cancelled call leaves the queue and delays no other call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := &clerk{}
			p := &provider.Retry{Provider: provider.NewAdmission(k, provider.Limits{Concurrency: 1})}
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() { play(t.Context(), p, protocol.ModelSpec{ID: "a"}) })
			synctest.Wait()
			group.Go(func() {
				if got := play(ctx, p, protocol.ModelSpec{ID: "b"}); got.code() != "cancelled" || clock() != 0 {
					t.Errorf("the cancelled call ended with %v after %v", got.err, clock())
				}
			})
			synctest.Wait()
			group.Go(func() { play(t.Context(), p, protocol.ModelSpec{ID: "c"}) })
			synctest.Wait()
			cancel()
			group.Wait()
			if want := []string{"a at 0s", "c at 1s"}; !slices.Equal(k.began, want) {
				t.Errorf("calls began %q, want %q", k.began, want)
			}
		})
	})

	t.Run("runtime/M09 a wait before the next attempt leaves room to others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &provider.Retry{Provider: provider.NewAdmission(attempts{fails(busy), says("hi")}, provider.Limits{Concurrency: 1})}
			for name, got := range ask(t, p, "a", "b", "c") {
				waits := slices.DeleteFunc(got.waits, func(w time.Duration) bool { return w == 0 }) // for the others, which try again at the same moment
				if got.err != nil || !slices.Equal(waits, seconds(2)) {
					t.Errorf("call %s ended with %v after waits %v", name, got.err, got.waits)
				}
			}
		})
	})
}

// outage is a Provider whose server is down as long as its field says.
type outage struct {
	down  bool
	calls int
	other error // failure of a server that is up
}

func (o *outage) Stream(context.Context, *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		o.calls++
		switch {
		case o.down:
			yield(provider.Chunk{}, &down)
		case o.other != nil:
			yield(provider.Chunk{}, o.other)
		default:
			says("hi")(yield)
		}
	}
}

func TestBreaker(t *testing.T) {
	call := func(t *testing.T, p provider.Provider) (played, time.Duration) {
		began := time.Now()
		got := play(t.Context(), p, protocol.ModelSpec{Provider: "acme"})
		return got, time.Since(began)
	}

	t.Run("runtime/M09 a dead server fails calls at once after three of them, and is tried again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := &outage{down: true}
			p := provider.NewBreaker(&provider.Retry{Provider: server})
			for range 3 {
				if got, took := call(t, p); got.code() != "connect_failed" || took != 1500*time.Millisecond {
					t.Fatalf("the call ended with %v after %v", got.err, took)
				}
			}
			before := server.calls
			time.Sleep(time.Second)
			got, took := call(t, p)
			const text = "model call: connection refused; the last 3 calls found no server, so lashd does not call it for 4s, until "
			if got.code() != "server_down" || took != 0 || server.calls != before || !strings.HasPrefix(got.err.Error(), text) {
				t.Errorf("the fourth call ended with %v after %v and %d requests", got.err, took, server.calls-before)
			}
			if failure, ok := errors.AsType[*provider.Error](got.err); !ok || !failure.Down || failure.Retryable {
				t.Errorf("the fourth call ended with %+v", failure)
			}
			time.Sleep(4 * time.Second)
			if got, took := call(t, p); got.code() != "connect_failed" || took != 1500*time.Millisecond {
				t.Errorf("the call that tries the server ended with %v after %v", got.err, took)
			}
			if got, took := call(t, p); got.code() != "server_down" || took != 0 {
				t.Errorf("the call after it ended with %v after %v", got.err, took)
			}
			server.down = false
			time.Sleep(5 * time.Second)
			for range 2 {
				if got, _ := call(t, p); got.text() != "hi" {
					t.Errorf("a call to the server that is back ended with %v", got.err)
				}
			}
		})
	})

	t.Run("runtime/M09 while one call tries the server, others fail at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := &outage{down: true}
			p := provider.NewBreaker(&provider.Retry{Provider: server})
			for range 3 {
				call(t, p)
			}
			time.Sleep(5 * time.Second)
			got := ask(t, p, "a", "b")
			if got["a"].code() != "connect_failed" || got["b"].code() != "server_down" || !strings.Contains(got["b"].err.Error(), "until the call that is trying it now has ended") {
				t.Errorf("the calls ended with %v and %v", got["a"].err, got["b"].err)
			}
		})
	})

	t.Run("runtime/M09 only calls in a row that find no server count", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := &outage{down: true, other: &provider.Error{Code: "no", Kind: provider.KindAuth}}
			p := provider.NewBreaker(&provider.Retry{Provider: server})
			for range 4 {
				call(t, p)
				call(t, p)
				server.down = false
				if got, _ := call(t, p); got.code() != "no" {
					t.Errorf("a call to a server that is up ended with %v", got.err)
				}
				server.down = true
			}
		})
	})

	t.Run("runtime/M09 a cancelled call that tries the server lets the next one try it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := &outage{down: true}
			p := provider.NewBreaker(&provider.Retry{Provider: server})
			for range 3 {
				call(t, p)
			}
			time.Sleep(5 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if got := play(ctx, p, protocol.ModelSpec{}); got.code() != "cancelled" {
				t.Errorf("the cancelled call ended with %v", got.err)
			}
			server.down = false
			if got, _ := call(t, p); got.text() != "hi" {
				t.Errorf("the next call ended with %v", got.err)
			}
		})
	})

	t.Run("runtime/M09 a configuration that waits for its server is never cut short", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := provider.NewBreaker(&provider.Retry{Provider: &outage{down: true}, Policy: provider.Policy{DownFor: time.Minute}})
			for range 5 {
				if got, took := call(t, p); got.code() != "connect_failed" || took < 45*time.Second {
					t.Errorf("the call ended with %v after %v", got.err, took)
				}
			}
		})
	})
}
