package protocol

import (
	"cmp"
	"errors"
	"math"
)

// Usage counts tokens. reasoning is a part of output; the other counts do not overlap. cost covers the calls whose model had a price
// in the configuration at that time.
type Usage struct {
	Input      int64 `json:"input"` // input tokens without cached ones
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Reasoning  int64 `json:"reasoning"`
	Cost       int64 `json:"cost,omitempty"` // in billionths of a US dollar
}

// ErrUsageOverflow means that a sum of token counts overflows an int64. The turn fails.
var ErrUsageOverflow = errors.New("token usage overflow")

// Add returns the sum of two usages. It fails with ErrUsageOverflow on overflow or if a count of v is negative.
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

// Total returns the sum of input, output, cacheRead and cacheWrite.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

func (u Usage) buckets() [6]int64 {
	return [6]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning, u.Cost}
}

// Price is the price of a model per million tokens, in US dollars.
type Price struct {
	Input   float64 `json:"input"`
	Output  float64 `json:"output"`
	Cached  float64 `json:"cached"`            // for tokens read from a cache
	Written float64 `json:"written,omitempty"` // for tokens written to a cache; 0: the price of input
}

// maxCost is the maximum cost of a call, 1000 US dollars in billionths. A higher cost means that the server reported wrong token
// counts, which must not distort the sums.
const maxCost = 1e12

// Of returns the cost of u in billionths of a US dollar, between 0 and maxCost.
func (p Price) Of(u Usage) int64 {
	dollars := float64(u.Input)*p.Input + float64(u.CacheWrite)*cmp.Or(p.Written, p.Input) + float64(u.Output)*p.Output + float64(u.CacheRead)*p.Cached
	return int64(min(max(math.Round(dollars*1000), 0), maxCost))
}

// With returns a copy of a usage with its cost. Without a price the cost is 0, so a cost that the provider reported is dropped. A nil
// usage stays nil.
func (p *Price) With(u *Usage) *Usage {
	if u == nil {
		return nil
	}
	with := *u
	with.Cost = 0
	if p != nil {
		with.Cost = p.Of(with)
	}
	return &with
}

// UsageRow is the usage of one source and model in a session's ledger.
type UsageRow struct {
	Source  string `json:"source"` // turn, or the label of a completion or a subagent
	Model   string `json:"model"`
	Usage   Usage  `json:"usage"`
	Calls   int64  `json:"calls"`
	Unknown int64  `json:"unknown,omitempty"` // number of calls whose usage is unknown
}

// CallRecord describes one model call, successful or not.
type CallRecord struct {
	Iteration  int             `json:"iteration"`
	Provider   string          `json:"provider"`
	Model      string          `json:"model"`
	Stop       StopReason      `json:"stop,omitempty"`
	Usage      *Usage          `json:"usage,omitempty"` // absent if lost or never reported
	Attempts   []CallAttempt   `json:"attempts"`
	Options    []OptionReceipt `json:"options,omitempty"`
	Evidence   *CallEvidence   `json:"evidence,omitempty"` // absent: the server reported nothing of it
	DurationMs int64           `json:"durationMs"`
}

// CallEvidence is what the model's server says about how it ran a call. lashd stores these fields and no others, never fills them in
// itself, and cuts each to 256 bytes.
type CallEvidence struct {
	Model       string `json:"model,omitempty"`       // the model that answered, which can differ from the one that was asked
	ServiceTier string `json:"serviceTier,omitempty"` // such as default, priority or flex
	ResponseID  string `json:"responseId,omitempty"`  // the server's id of the reply, for questions to its operator
}

// CallAttempt is one attempt of a model call.
type CallAttempt struct {
	Outcome  AttemptOutcome `json:"outcome"`
	Error    *Issue         `json:"error,omitempty"`
	Status   int            `json:"status,omitempty"`   // HTTP status, if there was a response
	Position string         `json:"position,omitempty"` // connecting, waiting or streaming
	Retry    string         `json:"retry,omitempty"`    // why lashd did or did not retry
	WaitMs   int64          `json:"waitMs,omitempty"`   // wait before the next attempt
}

// AttemptOutcome says how an attempt ended.
type AttemptOutcome string

const (
	AttemptCompleted   AttemptOutcome = "completed"
	AttemptFailed      AttemptOutcome = "failed"
	AttemptAborted     AttemptOutcome = "aborted"     // cancelled by lashd
	AttemptInterrupted AttemptOutcome = "interrupted" // the daemon ended during the attempt
)

// OptionReceipt says whether a generation option was applied.
type OptionReceipt struct {
	Option string `json:"option"`
	Fate   string `json:"fate"` // applied, clamped, omittedUnsupported, omittedPinned or omittedOtherRoute
}

// StopReason says why a model stopped.
type StopReason string

const (
	StopEnd           StopReason = "stop"            // it finished its reply
	StopToolUse       StopReason = "toolUse"         // it made tool calls
	StopOutputLimit   StopReason = "outputLimit"     // the reply reached the output limit
	StopContextLimit  StopReason = "contextOverflow" // the request exceeds the context window
	StopContentFilter StopReason = "contentFilter"   // the server's content filter stopped it, or the model refused
	StopError         StopReason = "providerError"   // the model's server failed
	StopCancelled     StopReason = "cancelled"       // the call was cancelled
	StopUnknown       StopReason = "unknown"         // the server gave no known reason
)
