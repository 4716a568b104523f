package provider_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// chunks is a provider whose every attempt yields these chunks and then fails.
type chunks struct {
	list []provider.Chunk
	end  provider.Error
}

// Stream implements provider.Provider.
func (c chunks) Stream(context.Context, *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		for _, chunk := range c.list {
			if !yield(chunk, nil) {
				return
			}
		}
		yield(provider.Chunk{}, &c.end)
	}
}

// TestPositions has attempts that fail at each place: the record says where, and only output forbids another attempt.
func TestPositions(t *testing.T) {
	usage := provider.Chunk{Usage: &protocol.Usage{Input: 1}}
	refused := provider.Error{Kind: provider.KindHTTP, Code: "busy", Status: 503, Retryable: true}
	broken := provider.Error{Kind: provider.KindStream, Code: "stream_broken", Retryable: true}
	for name, c := range map[string]struct {
		chunks
		want string // position and decision of the first attempt
	}{
		"no connection":            {chunks{nil, broken}, "connecting retryable"},
		"a rejection":              {chunks{nil, refused}, "waiting retryable"},
		"news without output":      {chunks{[]provider.Chunk{usage}, broken}, "waiting retryable"},
		"a text":                   {chunks{[]provider.Chunk{{Text: "a"}}, broken}, "streaming output began"},
		"a text and then news":     {chunks{[]provider.Chunk{{Text: "a"}, usage}, broken}, "streaming output began"},
		"a thought and then news":  {chunks{[]provider.Chunk{{Reasoning: "a"}, usage}, broken}, "streaming output began"},
		"a call and then news":     {chunks{[]provider.Chunk{{Part: &protocol.Part{Kind: protocol.PartToolCall}}, usage}, broken}, "streaming output began"},
		"a rejection after a text": {chunks{[]provider.Chunk{{Text: "a"}}, refused}, "streaming output began"},
	} {
		t.Run("runtime/M11 runtime/M13 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := play(t.Context(), &provider.Retry{Provider: c.chunks}, protocol.ModelSpec{})
				first := got.reply.Attempts[0]
				if s := fmt.Sprintf("%s %s", first.Position, first.Retry); s != c.want {
					t.Errorf("the first attempt is recorded as %q, want %q", s, c.want)
				}
			})
		})
	}
}

func TestElsewhere(t *testing.T) {
	for want, failures := range map[bool][]provider.Error{
		true: {
			{Kind: provider.KindTransport}, {Kind: provider.KindTimeout}, {Kind: provider.KindAuth}, {Kind: provider.KindQuota},
			{Kind: provider.KindHTTP, Status: 429, Retryable: true}, {Kind: provider.KindHTTP, Status: 500}, {Kind: provider.KindStream, Retryable: true},
			{Kind: provider.KindValidation, Status: 404}, {Kind: provider.KindValidation, Code: "model_not_found", Status: 400}, {Kind: provider.KindValidation, Code: "invalid_base_url"},
		},
		false: {
			{Kind: provider.KindHTTP, Status: 307}, {Kind: provider.KindStream, Code: "malformed_answer"}, {Kind: provider.KindValidation, Status: 400},
			{Kind: provider.KindUnsupported, Status: 501}, {Kind: provider.KindUnknown}, {Kind: provider.KindTransport, Stop: protocol.StopCancelled},
			{Kind: provider.KindHTTP, Status: 500, Retryable: true, Stop: protocol.StopContentFilter},
		},
	} {
		for _, failure := range failures {
			if failure.Elsewhere() != want {
				t.Errorf("part9/fallback another model is asked after %+v: %v, want %v", failure, !want, want)
			}
		}
	}
}
