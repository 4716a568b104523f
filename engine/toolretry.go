package engine

import (
	"context"
	"time"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// attempts makes a call, again if its tool lets that be done and the failure says that it is safe. Hooks see every attempt,
// the projector the last. The answer is false if the turn is left and the call's result is not known.
func (r *run) attempts(ctx context.Context, s *stage) (turn.ToolReply, bool) {
	began := time.Now()
	for n := 1; ; n++ {
		reply, ok := r.execute(ctx, s)
		if !ok {
			return reply, false
		}
		wait, again := s.retry(n, &reply.Output)
		if again && pause(ctx, wait) == nil {
			s.attempt++
			continue
		}
		reply.DurationMs = time.Since(began).Milliseconds()
		s.gather(&reply)
		r.projected(ctx, s, &reply)
		r.want(s, &reply)
		return reply, true
	}
}

// retry tells whether a call is tried again after its n-th attempt, and when. An output that would be, but for the number
// of attempts, is marked.
func (s *stage) retry(n int, out *protocol.ToolOutput) (time.Duration, bool) {
	policy := s.entry.Terms().Retry
	if policy == nil || !s.repeatable() || out.Status != protocol.OutputFailure || out.Failure == nil || !out.Failure.Retry {
		return 0, false
	}
	if n >= policy.Attempts {
		out.Exhausted = true
		return 0, false
	}
	asked := time.Duration(min(max(0, out.Failure.AfterMs), maxRetryAfter.Milliseconds())) * time.Millisecond
	return max(backoff(policy, n), asked), true
}

const (
	maxRetryAfter = time.Minute    // that an output may ask for, as provider.Policy has it of servers
	maxBackoff    = 24 * time.Hour // that a contract may declare
)

// backoff is the wait after the n-th attempt that a contract declares: it doubles up to its cap.
func backoff(policy *protocol.ToolRetry, n int) time.Duration {
	limit := maxBackoff.Milliseconds()
	if policy.CapMs > 0 {
		limit = min(limit, policy.CapMs)
	}
	ms := min(policy.BaseMs, limit)
	for ; n > 1 && 0 < ms && ms < limit; n-- {
		ms *= 2
	}
	return time.Duration(min(ms, limit)) * time.Millisecond
}
