package tool

import (
	"encoding/json"
	"strings"
	"time"

	"lashd/rpc/protocol"
)

const (
	maxRetryAfter = time.Minute    // an output can ask for this wait at most, like a server in provider.Policy
	maxBackoff    = 24 * time.Hour // a contract can declare this backoff at most
)

// RetryWait returns the wait after the n-th attempt: that of the policy, or the one in milliseconds that the output asked for if it is
// longer.
func RetryWait(policy *protocol.ToolRetry, n int, askedMs int64) time.Duration {
	asked := time.Duration(min(max(0, askedMs), maxRetryAfter.Milliseconds())) * time.Millisecond
	return max(backoff(policy, n), asked)
}

// backoff returns the wait after the n-th attempt: the policy's base, doubled for each further
// attempt up to its cap.
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

// Tidy makes an output valid for JSON: it repairs text that is not UTF-8 and drops raw values that
// are not JSON. It also removes intents and
// refusals, which only lashd may set.
func Tidy(out protocol.ToolOutput) protocol.ToolOutput {
	if out.Status == "" {
		out.Status = protocol.OutputSuccess
	}
	out.Intents, out.Refusal = nil, nil // set later, by lashd
	out.Text = strings.ToValidUTF8(out.Text, "\uFFFD")
	if len(out.Value) > 0 && !json.Valid(out.Value) {
		out.Value = nil
	}
	if out.Failure != nil {
		f := *out.Failure
		f.Message = strings.ToValidUTF8(f.Message, "\uFFFD")
		if len(f.Raw) > 0 && !json.Valid(f.Raw) {
			f.Raw = nil
		}
		out.Failure = &f
	}
	return out
}
