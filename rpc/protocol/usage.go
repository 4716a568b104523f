package protocol

import (
	"errors"
	"math"
)

// Usage counts tokens in five buckets. Reasoning is a part of Output; the others are disjoint. Cost is what those of them cost
// whose model had a price in the configuration when it was called.
type Usage struct {
	Input      int64 `json:"input"` // not cached
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Reasoning  int64 `json:"reasoning"`
	Cost       int64 `json:"cost,omitempty"` // in billionths of a US dollar
}

// ErrUsageOverflow means that a sum of token counts does not fit; it fails the turn instead of wrapping.
var ErrUsageOverflow = errors.New("token usage overflow")

// Add sums two usages, or fails with ErrUsageOverflow. Counts are never negative.
func (u Usage) Add(v Usage) (Usage, error) {
	a, b := u.buckets(), v.buckets()
	for i := range a {
		if b[i] < 0 || a[i] > math.MaxInt64-b[i] {
			return Usage{}, ErrUsageOverflow
		}
		a[i] += b[i]
	}
	return Usage{a[0], a[1], a[2], a[3], a[4], a[5]}, nil
}

// Total is input, output, cache read and cache write together.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

func (u Usage) buckets() [6]int64 {
	return [6]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning, u.Cost}
}

// Price is what a million tokens of a model cost, in US dollars.
type Price struct {
	Input  float64 `json:"input"` // also what is written to a cache
	Output float64 `json:"output"`
	Cached float64 `json:"cached"` // what is read from a cache
}

// maxCost is a thousand dollars: a call that seems to cost more is a model's lie about its tokens, which must not spoil sums.
const maxCost = 1e12

// Of is what tokens cost, in billionths of a US dollar.
func (p Price) Of(u Usage) int64 {
	dollars := float64(u.Input+u.CacheWrite)*p.Input + float64(u.Output)*p.Output + float64(u.CacheRead)*p.Cached
	return int64(min(max(math.Round(dollars*1000), 0), maxCost))
}

// UsageRow is one line of a session's ledger.
type UsageRow struct {
	Source  string `json:"source"` // turn, or the label of a direct completion or of a session that works for this one
	Model   string `json:"model"`
	Usage   Usage  `json:"usage"`
	Calls   int64  `json:"calls"`
	Unknown int64  `json:"unknown,omitempty"` // calls whose usage was lost
}

// CallRecord tells all about one model call, whether it succeeded or not.
type CallRecord struct {
	Iteration  int             `json:"iteration"`
	Provider   string          `json:"provider"`
	Model      string          `json:"model"`
	Stop       StopReason      `json:"stop,omitempty"`
	Usage      *Usage          `json:"usage,omitempty"` // absent when it was lost or never reported
	Attempts   []CallAttempt   `json:"attempts"`
	Options    []OptionReceipt `json:"options,omitempty"`
	DurationMs int64           `json:"durationMs"`
}

// CallAttempt is one try of a model call.
type CallAttempt struct {
	Outcome  AttemptOutcome `json:"outcome"`
	Error    *Issue         `json:"error,omitempty"`
	Status   int            `json:"status,omitempty"`   // HTTP status, when there was one
	Position string         `json:"position,omitempty"` // connecting, waiting, streaming
	Retry    string         `json:"retry,omitempty"`    // why it was or was not tried again
	WaitMs   int64          `json:"waitMs,omitempty"`   // before the next attempt
}

// AttemptOutcome is how an attempt ended.
type AttemptOutcome string

const (
	AttemptCompleted   AttemptOutcome = "completed"
	AttemptFailed      AttemptOutcome = "failed"
	AttemptAborted     AttemptOutcome = "aborted"     // cancelled by us
	AttemptInterrupted AttemptOutcome = "interrupted" // the daemon died during it
)

// OptionReceipt says what became of a generation option.
type OptionReceipt struct {
	Option string `json:"option"`
	Fate   string `json:"fate"` // applied, suppressed, omittedUnsupported, omittedPinned, clamped
}

// StopReason is why a model stopped.
type StopReason string

const (
	StopEnd           StopReason = "stop"
	StopToolUse       StopReason = "toolUse"
	StopOutputLimit   StopReason = "outputLimit"
	StopContextLimit  StopReason = "contextOverflow"
	StopContentFilter StopReason = "contentFilter"
	StopError         StopReason = "providerError"
	StopCancelled     StopReason = "cancelled"
	StopUnknown       StopReason = "unknown"
)
