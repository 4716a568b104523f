// Package scripted plays a written transcript as a model, for tests and demonstrations. It needs no network and no key.
//
// A script is a JSON object:
//
//	{
//	  "models": ["demo"],                  of no use any more; it may be left out
//	  "turns": [
//	    {
//	      "match": {"lastUserContains": "weather"},
//	      "replies": [
//	        {
//	          "reasoning": "I have to look.",
//	          "text": "Let me see.",
//	          "chunkSize": 4,              characters per delta; absent: each text in one piece
//	          "delayMs": 5,                before each delta
//	          "toolCalls": [{"id": "c1", "name": "weather", "args": {"city": "Bern"}}],
//	          "usage": {"input": 20, "output": 9},
//	          "stop": "toolUse"            absent: toolUse with calls, stop without
//	        },
//	        {"expect": {"afterToolResults": true, "lastResultContains": "rain"}, "text": "Take an umbrella."}
//	      ]
//	    },
//	    {"replies": [{"text": "Hello."}]},
//	    {"replies": [{"text": "Wait...", "stall": true}]}
//	  ],
//	  "otherwise": {"replies": [{"text": "I have no line for that."}]}
//	}
//
// Which reply is played depends on the request's conversation and on nothing else, so that a turn goes on rightly after
// a restart. The last message of role user or event that has a text or an attachment chooses the turn: the first turn
// whose match it contains, or else, if it is the n-th message that no match fits, the n-th turn without a match, or
// else "otherwise". Within the turn, the reply is chosen by the number of assistant messages since that message.
// Transient messages do not count. An expect that does not hold fails the call, as does a script that has no more to say.
//
// A reply with "stall" says what it has to say and then nothing more until the call is cancelled. A reply with "error"
// is broken off:
//
//	"error": {"kind": "http", "code": "overloaded", "message": "busy", "status": 503, "retryable": true,
//	          "throttled": false, "retryAfterMs": 1000, "stop": "",
//	          "afterChunks": 2,            deltas played first
//	          "times": 1}                  only the first attempts of a call fail; absent: all of them
package scripted

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Provider plays a Script. It keeps nothing between calls.
type Provider struct{ script *Script }

// New plays a script that came from Load or Parse. The script must not be changed afterwards.
func New(s *Script) *Provider { return &Provider{script: s} }

// Stream implements provider.Provider.
func (p *Provider) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		r, err := p.script.pick(read(req.Messages))
		if err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		play(ctx, r, req.Scope.Attempt, yield)
	}
}

func play(ctx context.Context, r *Reply, attempt int, yield func(provider.Chunk, error) bool) {
	failure := r.Error
	if failure != nil && failure.Times > 0 && attempt > failure.Times {
		failure = nil
	}
	played := 0
	for chunk := range r.chunks() {
		if failure != nil && played >= failure.AfterChunks {
			break
		}
		if !pause(ctx, r.DelayMs) {
			yield(provider.Chunk{}, provider.Cancelled(ctx))
			return
		}
		if !yield(chunk, nil) {
			return
		}
		played++
	}
	switch {
	case r.Stall:
		<-ctx.Done()
		yield(provider.Chunk{}, provider.Cancelled(ctx))
	case failure != nil:
		yield(provider.Chunk{}, failure.err())
	default:
		yield(provider.Chunk{Usage: r.Usage, Stop: r.stop()}, nil)
	}
}

// chunks is all of a reply but its end.
func (r *Reply) chunks() iter.Seq[provider.Chunk] {
	return func(yield func(provider.Chunk) bool) {
		for text := range pieces(r.Reasoning, r.ChunkSize) {
			if !yield(provider.Chunk{Reasoning: text}) {
				return
			}
		}
		for text := range pieces(r.Before, r.ChunkSize) {
			if !yield(provider.Chunk{Commentary: text}) {
				return
			}
		}
		for text := range pieces(r.Text, r.ChunkSize) {
			if !yield(provider.Chunk{Text: text}) {
				return
			}
		}
		for _, c := range r.ToolCalls {
			call := &protocol.ToolCall{CallID: c.ID, Name: c.Name, Args: c.Args}
			if len(call.Args) == 0 {
				call.Args = json.RawMessage("{}")
			}
			if !yield(provider.Chunk{Part: &protocol.Part{Kind: protocol.PartToolCall, Call: call}}) {
				return
			}
		}
	}
}

func (r *Reply) stop() protocol.StopReason {
	if len(r.ToolCalls) > 0 {
		return cmp.Or(r.Stop, protocol.StopToolUse)
	}
	return cmp.Or(r.Stop, protocol.StopEnd)
}

func (f *Failure) err() *provider.Error {
	return &provider.Error{
		Kind:       f.Kind,
		Code:       f.Code,
		Message:    cmp.Or(f.Message, fmt.Sprintf("the script says %s", f.Code)),
		Status:     f.Status,
		Retryable:  f.Retryable,
		RetryAfter: time.Duration(f.RetryAfterMs) * time.Millisecond,
		Throttled:  f.Throttled,
		Stop:       f.Stop,
	}
}

// pieces cuts text after each size characters.
func pieces(text string, size int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := cut(text, size)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// cut is the length in bytes of the first size characters.
func cut(text string, size int) int {
	if size == 0 {
		return len(text)
	}
	runes := 0
	for i := range text {
		if runes == size {
			return i
		}
		runes++
	}
	return len(text)
}

// pause waits and reports whether ctx is still alive.
func pause(ctx context.Context, ms int64) bool {
	if ms == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
