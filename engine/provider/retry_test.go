package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// attempts is a Provider whose n-th attempt does what the n-th function says; the last one goes on for ever.
type attempts []func(yield func(provider.Chunk, error) bool)

func (a attempts) Stream(_ context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return a[min(req.Scope.Attempt, len(a))-1]
}

func fails(e provider.Error) func(func(provider.Chunk, error) bool) {
	return func(yield func(provider.Chunk, error) bool) { yield(provider.Chunk{}, &e) }
}

func says(text string) func(func(provider.Chunk, error) bool) {
	return func(yield func(provider.Chunk, error) bool) {
		_ = yield(provider.Chunk{Text: text}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
	}
}

func breaks(text string) func(func(provider.Chunk, error) bool) {
	return func(yield func(provider.Chunk, error) bool) {
		_ = yield(provider.Chunk{Text: text}, nil) && yield(provider.Chunk{}, &broken)
	}
}

var (
	busy      = provider.Error{Kind: provider.KindHTTP, Code: "busy", Status: 503, Retryable: true}
	down      = provider.Error{Kind: provider.KindTransport, Code: "connect_failed", Message: "connection refused", Retryable: true, Down: true}
	throttled = provider.Error{Kind: provider.KindHTTP, Code: "slow_down", Status: 429, Retryable: true, Throttled: true}
	broken    = provider.Error{Kind: provider.KindStream, Code: "stream_broken", Retryable: true}
)

// played is what a reader saw of a call.
type played struct {
	reply  provider.Reply
	waits  []time.Duration
	resets int
	err    error
}

func play(ctx context.Context, p provider.Provider, model protocol.ModelSpec) played {
	var got played
	var c provider.Collector
	for chunk, err := range p.Stream(ctx, &provider.Request{Model: model}) {
		if err != nil {
			got.err = err
			break
		}
		if chunk.Retry != nil {
			got.waits = append(got.waits, time.Duration(chunk.Retry.WaitMs)*time.Millisecond)
		}
		if chunk.Reset {
			got.resets++
		}
		c.Add(&chunk)
	}
	got.reply = c.Reply()
	return got
}

func (p played) text() string {
	m := p.reply.Message()
	return m.Text(protocol.PartProse)
}

func (p played) code() string {
	if e, ok := errors.AsType[*provider.Error](p.err); ok {
		return e.Code
	}
	return fmt.Sprint(p.err)
}

func seconds(n ...int) []time.Duration {
	var d []time.Duration
	for _, s := range n {
		d = append(d, time.Duration(s)*time.Second)
	}
	return d
}

func TestRetryWaits(t *testing.T) {
	after := func(e provider.Error, d time.Duration) provider.Error { e.RetryAfter = d; return e }
	repeat := func(n int, d int) []time.Duration {
		var all []time.Duration
		for range n {
			all = append(all, seconds(d)...)
		}
		return all
	}
	for _, c := range []struct {
		name   string
		policy provider.Policy
		script attempts
		waits  []time.Duration
		code   string // of the error; "": the call succeeds
	}{
		{"runtime/M11 four attempts, doubled waits", provider.Policy{}, attempts{fails(busy)}, seconds(2, 4, 8), "busy"},
		{"runtime/M11 waits are capped", provider.Policy{Attempts: 6}, attempts{fails(busy)}, seconds(2, 4, 8, 10, 10), "busy"},
		{"runtime/M11 success ends it", provider.Policy{}, attempts{fails(busy), says("hi")}, seconds(2), ""},
		{"runtime/M11 Retry-After is honoured", provider.Policy{}, attempts{fails(after(busy, 7*time.Second)), says("hi")}, seconds(7), ""},
		{"outside/24 a Retry-After beyond a minute is waited for", provider.Policy{}, attempts{fails(after(busy, 8*time.Minute)), says("hi")}, seconds(480), ""},
		{"runtime/M11 a Retry-After beyond ten minutes ends the call", provider.Policy{}, attempts{fails(after(busy, time.Hour)), says("hi")}, nil, "busy"},
		{
			"outside/24 a server that is down fails within 3 s of the first refusal", provider.Policy{},
			attempts{fails(down)}, []time.Duration{5e8, 1e9}, "connect_failed",
		},
		{
			"outside/24 a server that is down is tried again for as long as configured", provider.Policy{DownFor: 20 * time.Second},
			attempts{fails(down)}, []time.Duration{5e8, 1e9, 2e9, 4e9, 8e9}, "connect_failed",
		},
		{
			"outside/24 a server that comes up uses up no attempt", provider.Policy{Attempts: 2},
			attempts{fails(down), fails(down), fails(busy), says("hi")}, []time.Duration{5e8, 1e9, 2e9}, "",
		},
		{
			"runtime/M11 eight courtesy waits burn no attempts", provider.Policy{},
			attempts{fails(after(throttled, time.Second))}, repeat(11, 1), "slow_down",
		},
		{
			"runtime/M11 the throttle budget ends", provider.Policy{},
			attempts{fails(after(throttled, 40*time.Second))}, repeat(2+3, 40), "slow_down",
		},
		{
			"runtime/M11 a short wait costs a second", provider.Policy{ThrottleBudget: 3 * time.Second, Attempts: 1},
			attempts{fails(after(throttled, time.Millisecond))}, []time.Duration{1e6, 1e6, 1e6}, "slow_down",
		},
		{
			"runtime/M11 throttling without Retry-After backs off", provider.Policy{Attempts: 1},
			attempts{fails(throttled)}, seconds(2, 4, 8, 10, 10, 10, 10, 10), "slow_down",
		},
		{
			"runtime/M11 waits that the server names do not lengthen those that it does not name", provider.Policy{},
			attempts{
				fails(after(throttled, time.Second)), fails(after(throttled, 3*time.Second)), fails(throttled), fails(throttled),
				fails(after(busy, 7*time.Second)), fails(busy), says("hi"),
			}, seconds(1, 3, 2, 4, 7, 2), "",
		},
		{
			"runtime/M11 a terminal error is not retried", provider.Policy{},
			attempts{fails(provider.Error{Kind: provider.KindAuth, Code: "invalid_api_key"})}, nil, "invalid_api_key",
		},
		{
			"runtime/M11 a way of stopping is not retried", provider.Policy{},
			attempts{fails(provider.Error{Code: "too_long", Retryable: true, Stop: protocol.StopContextLimit})}, nil, "too_long",
		},
		{"runtime/M11 never after output began", provider.Policy{}, attempts{breaks("ha")}, nil, "stream_broken"},
		{
			"runtime/M10 a sequence without an end is an error", provider.Policy{Attempts: 1},
			attempts{func(func(provider.Chunk, error) bool) {}}, nil, "ended_without_evidence",
		},
		{
			"runtime/M01 a provider's panic is contained", provider.Policy{},
			attempts{func(func(provider.Chunk, error) bool) { panic("oh") }}, nil, "provider_panic",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				got := play(t.Context(), &provider.Retry{Provider: c.script, Policy: c.policy}, protocol.ModelSpec{})
				if d := cmp.Diff(c.waits, got.waits); d != "" {
					t.Errorf("waits (-want +got):\n%s", d)
				}
				sum := time.Duration(0)
				for _, w := range c.waits {
					sum += w
				}
				if took := time.Since(begin); took != sum {
					t.Errorf("took %v, want %v", took, sum)
				}
				if c.code == "" && got.err != nil || c.code != "" && got.code() != c.code {
					t.Errorf("error %v, want code %q", got.err, c.code)
				}
				if n := len(got.reply.Attempts); n != len(c.waits)+1 {
					t.Errorf("%d attempts recorded, want %d", n, len(c.waits)+1)
				}
			})
		})
	}
}

func TestRetryStatus(t *testing.T) {
	limited := throttled
	limited.Message, limited.RetryAfter = "slow down, please", 90*time.Second
	for _, c := range []struct {
		name  string
		fails provider.Error
		want  protocol.RetryStatus
		shown string
	}{
		{
			"outside/24 a counted attempt shows its number, status and message", provider.Error{Code: "busy", Message: "overloaded", Status: 503, Retryable: true},
			protocol.RetryStatus{WaitMs: 2000, Attempt: 2, Attempts: 4, Counted: true, Reason: "busy", Status: 503, Message: "overloaded"},
			"the model call failed: overloaded (HTTP 503); attempt 2 of 4 in 2s",
		},
		{
			"outside/24 a throttled call shows the wait that the server asked for, and no attempt", limited,
			protocol.RetryStatus{WaitMs: 90000, Attempt: 1, Attempts: 4, Reason: "slow_down", Status: 429, Message: "slow down, please"},
			"the model call failed: slow down, please (HTTP 429); trying again in 1m30s",
		},
		{
			"outside/24 a server that is down shows no status", down,
			protocol.RetryStatus{WaitMs: 500, Attempt: 1, Attempts: 4, Reason: "connect_failed", Message: "connection refused"},
			"the model call failed: connection refused; trying again in 500ms",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []protocol.RetryStatus
				for chunk, err := range (&provider.Retry{Provider: attempts{fails(c.fails), says("hi")}}).Stream(t.Context(), &provider.Request{}) {
					if err != nil {
						t.Fatal(err)
					}
					if chunk.Retry != nil {
						got = append(got, *chunk.Retry)
					}
				}
				if d := cmp.Diff([]protocol.RetryStatus{c.want}, got); d != "" {
					t.Errorf("retry status (-want +got):\n%s", d)
				}
				if shown := c.want.String(); shown != c.shown {
					t.Errorf("shown as %q, want %q", shown, c.shown)
				}
			})
		})
	}
}

func TestLongWaitIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		limited := busy
		limited.RetryAfter = 9 * time.Minute
		began := time.Now()
		time.AfterFunc(time.Minute, cancel)
		got := play(ctx, &provider.Retry{Provider: attempts{fails(limited), says("hi")}}, protocol.ModelSpec{})
		if got.code() != "cancelled" || time.Since(began) != time.Minute {
			t.Errorf("outside/24 error %v after %v, want the call cancelled after a minute", got.err, time.Since(began))
		}
	})
}

func TestRetryAfterOutput(t *testing.T) {
	t.Run("runtime/M11 an idempotent model's output is withdrawn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &provider.Retry{Provider: attempts{breaks("draft"), fails(busy), says("final")}}
			got := play(t.Context(), p, protocol.ModelSpec{Idempotent: true})
			if got.err != nil || got.text() != "final" || got.resets != 1 {
				t.Errorf("text %q after %d resets, error %v; want the final text after 1", got.text(), got.resets, got.err)
			}
			want := []protocol.CallAttempt{
				{Outcome: "failed", Position: "streaming", Retry: "retryable", WaitMs: 2000},
				{Outcome: "failed", Position: "waiting", Retry: "retryable", WaitMs: 4000, Status: 503},
				{Outcome: "completed", Position: "streaming"},
			}
			for i := range got.reply.Attempts {
				got.reply.Attempts[i].Error = nil
			}
			if d := cmp.Diff(want, got.reply.Attempts); d != "" {
				t.Errorf("attempts (-want +got):\n%s", d)
			}
		})
	})
	t.Run("runtime/M11 text shown by a call that failed says so", func(t *testing.T) {
		got := play(t.Context(), &provider.Retry{Provider: attempts{breaks("draft")}}, protocol.ModelSpec{})
		if a := got.reply.Attempts; len(a) != 1 || a[0].Retry != "output began" {
			t.Errorf("attempts %+v, want one that is not retried because output began", a)
		}
	})
}

func TestRetryCancel(t *testing.T) {
	t.Run("runtime/M11 cancel ends a wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			got := play(ctx, &provider.Retry{Provider: attempts{fails(busy)}}, protocol.ModelSpec{})
			if took := time.Since(begin); took != time.Second || !errors.Is(got.err, context.DeadlineExceeded) {
				t.Errorf("error %v after %v, want %v after 1s", got.err, took, context.DeadlineExceeded)
			}
		})
	})
	t.Run("runtime/M11 a cancelled attempt is recorded as aborted", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("person asked")
		p := attempts{func(yield func(provider.Chunk, error) bool) {
			cancel(why)
			yield(provider.Chunk{}, &busy)
		}}
		got := play(ctx, &provider.Retry{Provider: p}, protocol.ModelSpec{})
		if a := got.reply.Attempts; len(a) != 1 || a[0].Outcome != protocol.AttemptAborted {
			t.Errorf("attempts %+v, want one aborted", a)
		}
		if !errors.Is(got.err, why) || !errors.Is(got.err, context.Canceled) {
			t.Errorf("error %v, want both %v and %v", got.err, why, context.Canceled)
		}
	})
}

func TestRetryPanics(t *testing.T) {
	t.Run("runtime/M01 a panic after output is contained and logged", func(t *testing.T) {
		var log strings.Builder
		p := &provider.Retry{
			Provider: attempts{func(yield func(provider.Chunk, error) bool) {
				yield(provider.Chunk{Text: "a"}, nil)
				panic("oh")
			}},
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		if got := play(t.Context(), p, protocol.ModelSpec{}); got.code() != "provider_panic" || got.text() != "a" {
			t.Errorf("text %q, error %v; want %q and provider_panic", got.text(), got.err, "a")
		}
		if !strings.Contains(log.String(), "TestRetryPanics") {
			t.Errorf("log %q has no stack", log.String())
		}
	})
	t.Run("runtime/M01 the reader's own panic passes", func(t *testing.T) {
		defer func() {
			if got := recover(); got != "mine" {
				t.Errorf("recovered %v, want the reader's panic", got)
			}
		}()
		for range (&provider.Retry{Provider: attempts{says("hi")}}).Stream(t.Context(), &provider.Request{}) {
			panic("mine")
		}
	})
	t.Run("runtime/M01 the reader may leave at any chunk", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &provider.Retry{Provider: attempts{breaks("draft"), says("final")}}
			req := &provider.Request{Model: protocol.ModelSpec{Idempotent: true}}
			for n := 1; ; n++ {
				seen := 0
				for range p.Stream(t.Context(), req) {
					if seen++; seen == n {
						break
					}
				}
				if seen < n {
					return
				}
			}
		})
	})
}

func TestSecretNeverShows(t *testing.T) {
	const key = "sk-do-not-show"
	type holder struct {
		Open   provider.Secret
		hidden provider.Secret
	}
	h := holder{provider.NewSecret(key), provider.NewSecret(key)}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", h.Open, "holder", h)
	encoded, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	shown.WriteString(log.String() + string(encoded) + h.Open.String())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown.WriteString(fmt.Sprintf(verb, h) + fmt.Sprintf(verb, h.Open) + fmt.Sprintf(verb, &h))
	}
	if strings.Contains(shown.String(), key) || strings.Contains(shown.String(), fmt.Sprintf("%x", key)) {
		t.Errorf("the key shows in %s", shown.String())
	}
	var read provider.Secret
	if err := json.Unmarshal([]byte(`"`+key+`"`), &read); err != nil || read.Reveal() != key {
		t.Errorf("read %q, error %v; want the key", read.Reveal(), err)
	}
}

func TestExcerptKeepsHeadAndTail(t *testing.T) {
	got := provider.Excerpt("HEAD" + strings.Repeat("ä", 10_000) + "TAIL")
	if n := len([]rune(got)); n > 4000 || !strings.HasPrefix(got, "HEAD") || !strings.HasSuffix(got, "TAIL") {
		t.Errorf("%d characters from %.10q to %.10q, want at most 4000 with head and tail", n, got, got[len(got)-10:])
	}
	if got := provider.Excerpt("short"); got != "short" {
		t.Errorf("%q, want it whole", got)
	}
}
