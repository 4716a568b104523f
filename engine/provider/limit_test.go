package provider_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// endless is a provider that says the same again and again.
func endless(chunk provider.Chunk) attempts {
	return attempts{func(yield func(provider.Chunk, error) bool) {
		for yield(chunk, nil) {
		}
	}}
}

func TestRetryEndsEndlessReplies(t *testing.T) {
	text := strings.Repeat("x", 10_000)
	call := func(args string) *protocol.Part {
		return &protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{Name: "f", Args: json.RawMessage(args)}}
	}
	for _, c := range []struct {
		name  string
		chunk provider.Chunk
		code  string
		least int // parts that are kept
	}{
		{"text", provider.Chunk{Text: text}, "reply_too_long", 1},
		{"commentary", provider.Chunk{Commentary: text}, "reply_too_long", 1},
		{"reasoning", provider.Chunk{Reasoning: text}, "reply_too_long", 1},
		{"all three", provider.Chunk{Text: "x", Commentary: "x", Reasoning: "x"}, "reply_too_long", 20_000},
		{"parts", provider.Chunk{Part: &protocol.Part{Kind: protocol.PartText}}, "reply_too_long", 20_000},
		{"replay", provider.Chunk{Replay: json.RawMessage(`"` + text + `"`)}, "reply_too_long", 0},
		{"long calls", provider.Chunk{Part: call(`"` + text + `"`)}, "reply_too_long", 150},
		{"short calls", provider.Chunk{Part: call(`{}`)}, "too_many_calls", 256},
	} {
		t.Run("runtime/M10 "+c.name, func(t *testing.T) {
			got := play(t.Context(), &provider.Retry{Provider: endless(c.chunk)}, protocol.ModelSpec{Idempotent: true})
			e, ok := errors.AsType[*provider.Error](got.err)
			if !ok || e.Code != c.code || len(got.waits) > 0 {
				t.Errorf("error %v after %d waits, want %s at once", got.err, len(got.waits), c.code)
			}
			data, err := json.Marshal(got.reply.Parts)
			if err != nil || len(got.reply.Parts) < c.least || len(data) > 2<<20 {
				t.Errorf("%d parts of %d bytes, error %v; want %d parts within 2 MiB", len(got.reply.Parts), len(data), err, c.least)
			}
		})
	}
}

// FuzzCost compares with what encoding/json makes of a text.
func FuzzCost(f *testing.F) {
	f.Add("a\"\\\n\t\r\b\f\x00\x7f<>&ä→")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.NewReplacer("\u2028", "", "\u2029", "").Replace(strings.ToValidUTF8(text, ""))
		data, err := json.Marshal(text)
		if least := len(data) - len(`""`); err != nil || provider.Cost(text) < least {
			t.Errorf("cost of %q is %d, want %d or more", text, provider.Cost(text), least)
		}
	})
}

func TestMask(t *testing.T) {
	m := provider.NewMask(provider.NewSecret("sk-key-1"), provider.NewSecret("sk-key-1-and-more"), provider.NewSecret("äö€😀&\"-key"), provider.NewSecret("short"))
	for text, want := range map[string]string{
		"sk-key-1 or sk-key-1-and-more": "[redacted] or [redacted]",
		"SK-KEY-1":                      "[redacted]",
		"a short one":                   "a short one",
		`"\u00e4\u00F6\u20ac\ud83d\uDE00\u0026\"-key"`:         `"[redacted]"`,
		`"\\u00e4ö\\u20ac😀&\\\"-key"`:                          `"[redacted]"`,
		"?k=%C3%a4%C3%B6%E2%82%AC%F0%9F%98%80%26%22-key&x=1":   "?k=[redacted]&x=1",
		"%25C3%25a4%C3%B6%E2%82%AC%F0%9F%98%80&amp;&#34;-key.": "[redacted].",
		"&#x73;&#107;-key-1":                                   "[redacted]",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("runtime/M02: %s shows as %s, want %s", text, got, want)
		}
	}
	if got := m.Cut(strings.Repeat("x", 200)+"sk-key-1", 205); strings.Contains(got, "sk-") || !strings.HasPrefix(got, "xxx") {
		t.Errorf("runtime/M02: cut in a key: %q, want only x", got)
	}
}
