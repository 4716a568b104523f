package outputbudget

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"lashd/rpc/protocol"
)

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestBound(t *testing.T) {
	t.Run("runtime/K04 output within the limit is unchanged", func(t *testing.T) {
		in := protocol.ToolOutput{Text: numbers(400), Value: json.RawMessage(`{ "a" : "` + strings.Repeat("x", 1000) + `" }`)}
		out := Bound(in, Limit{})
		if out.Text != in.Text || string(out.Value) != string(in.Value) {
			t.Error("an output within the limits was changed")
		}
	})
	t.Run("runtime/K04 keeps the beginning and the end", func(t *testing.T) {
		out := Bound(protocol.ToolOutput{Text: numbers(1000), Artifact: &protocol.ArtifactRef{Digest: protocol.DigestOf(nil)}}, Limit{})
		for _, want := range []string{"line 1\n", "line 199\n[... ", " in 601 lines omitted; the complete output is artifact ", string(protocol.DigestOf(nil)) + " ...]\nline 801\n", "line 1000\n"} {
			if !strings.Contains(out.Text, want) {
				t.Errorf("%q is not in %q", want, out.Text)
			}
		}
		if n := countLines(out.Text); n != defaultLines {
			t.Errorf("%d lines, want %d", n, defaultLines)
		}
	})
	t.Run("runtime/K04 bounds strings in a value", func(t *testing.T) {
		long := strings.Repeat("<&>", 20_000)
		value, err := json.Marshal(map[string]any{"n": json.Number("12345678901234567890"), "list": []any{"short", map[string]any{"deep": long}}})
		if err != nil {
			t.Fatal(err)
		}
		out := Bound(protocol.ToolOutput{Value: value}, Limit{})
		if len(out.Value) > defaultBytes+100 || !strings.Contains(string(out.Value), "12345678901234567890") || !strings.Contains(string(out.Value), `"short"`) {
			t.Errorf("value of %d bytes: %.200s", len(out.Value), out.Value)
		}
		if !json.Valid(out.Value) {
			t.Error("not JSON any more")
		}
	})
	t.Run("runtime/K04 does not modify its argument", func(t *testing.T) {
		failure := &protocol.ToolFailure{Message: numbers(1000)}
		Bound(protocol.ToolOutput{Failure: failure}, Limit{})
		if failure.Message != numbers(1000) {
			t.Error("the caller's failure was changed")
		}
	})
	t.Run("runtime/K04 stays within any limit, in whole characters", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			piece := rapid.SampledFrom([]string{"a", "\n", "\u00e4", "\U0001F600", "\xff", strings.Repeat("long ", 50), "\r\n"})
			text := strings.Join(rapid.SliceOfN(piece, 0, 400).Draw(t, "text"), "")
			limit := Limit{Bytes: rapid.IntRange(400, 4000).Draw(t, "bytes"), Lines: rapid.IntRange(3, 60).Draw(t, "lines")}
			out := Bound(protocol.ToolOutput{Text: text, Artifact: &protocol.ArtifactRef{Digest: protocol.DigestOf(nil)}}, limit).Text
			if !utf8.ValidString(out) || len(out) > limit.Bytes || countLines(out) > limit.Lines {
				t.Fatalf("%d bytes, %d lines, valid %v, limit %+v", len(out), countLines(out), utf8.ValidString(out), limit)
			}
			if again := Bound(protocol.ToolOutput{Text: out}, limit).Text; again != out {
				t.Fatalf("a second bound cuts again: %q, %q", out, again)
			}
		})
	})
}
