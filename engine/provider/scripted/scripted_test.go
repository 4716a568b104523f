package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"lashd/engine/provider"
	"lashd/engine/provider/providertest"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T, r providertest.Reply) provider.Provider {
		out := scripted.Reply{
			Reasoning: strings.Join(r.Reasoning, ""),
			Text:      strings.Join(r.Text, ""),
			ChunkSize: 3,
			Usage:     r.Usage,
			Stall:     r.Stall,
		}
		for _, c := range r.Calls {
			out.ToolCalls = append(out.ToolCalls, scripted.Call{ID: c.CallID, Name: c.Name, Args: c.Args})
		}
		if r.Cut {
			out.Error = &scripted.Failure{Kind: provider.KindStream, Code: "cut", AfterChunks: 3}
		}
		return scripted.New(&scripted.Script{Turns: []scripted.Turn{{Replies: []scripted.Reply{out}}}})
	})
}

const story = `{
  "models": ["demo"],
  "turns": [
    {"replies": [{"text": "first"}]},
    {"match": {"lastUserContains": "weather"}, "replies": [
      {"text": "look", "toolCalls": [{"id": "c1", "name": "weather", "args": {"city": "Bern"}}]},
      {"expect": {"afterToolResults": true, "lastResultContains": "rain"}, "text": "umbrella"}
    ]},
    {"replies": [{"text": "second"}]}
  ],
  "otherwise": {"replies": [{"text": "lost"}]}
}`

// talk builds a conversation: u: for the user, a: for the assistant, r: for a tool result, v: for one that is a value, f: for one that failed, t: for a transient message.
func talk(lines ...string) []*protocol.Message {
	var messages []*protocol.Message
	for _, line := range lines {
		who, text, _ := strings.Cut(line, ":")
		m := &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}
		switch who {
		case "a":
			m.Role, m.Parts[0].Kind = protocol.RoleAssistant, protocol.PartProse
		case "r":
			m.Parts[0] = protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{Output: protocol.Succeed(text)}}
		case "v":
			m.Parts[0] = protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{Output: protocol.ToolOutput{Value: json.RawMessage(text)}}}
		case "f":
			m.Parts[0] = protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{Output: protocol.ToolOutput{Status: protocol.OutputFailure, Failure: &protocol.ToolFailure{Message: text}}}}
		case "t":
			m.Origin = &protocol.Origin{Transient: true}
		}
		messages = append(messages, m)
	}
	return messages
}

func parse(t *testing.T, text string) *scripted.Provider {
	t.Helper()
	s, err := scripted.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s)
}

func ask(ctx context.Context, p provider.Provider, req *provider.Request) (provider.Reply, string) {
	var c provider.Collector
	for chunk, err := range p.Stream(ctx, req) {
		if e, ok := errors.AsType[*provider.Error](err); ok {
			return c.Reply(), e.Code
		}
		c.Add(&chunk)
	}
	return c.Reply(), ""
}

func TestReplyDependsOnTheConversation(t *testing.T) {
	for _, c := range []struct {
		name string
		talk []*protocol.Message
		want string // text, or code of the error
	}{
		{"first message", talk("u:hi"), "first"},
		{"second message", talk("u:hi", "a:first", "u:and?"), "second"},
		{"match", talk("u:weather please"), "look"},
		{"match does not use up a turn", talk("u:weather", "a:look", "r:rain", "a:umbrella", "u:hi"), "first"},
		{"match again starts again", talk("u:weather", "a:look", "r:rain", "a:umbrella", "u:weather"), "look"},
		{"after tool results", talk("u:weather", "a:look", "r:rain"), "umbrella"},
		{"after a failure", talk("u:weather", "a:look", "f:the gauge drowned in rain"), "umbrella"},
		{"after a result without a text", talk("u:weather", "a:look", `v:{"sky":"rain"}`), "umbrella"},
		{"transient messages do not count", talk("u:weather", "a:look", "r:rain", "t:it is noon"), "umbrella"},
		{"an unexpected result", talk("u:weather", "a:look", "r:sun"), "script_mismatch"},
		{"no tool result", talk("u:weather", "a:look"), "script_mismatch"},
		{"turns used up", talk("u:a", "a:first", "u:b", "a:second", "u:c"), "lost"},
		{"replies used up", talk("u:a", "a:first"), "script_exhausted"},
		{"no user", talk("a:first"), "script_exhausted"},
	} {
		t.Run("runtime/M07 "+c.name, func(t *testing.T) {
			for range 2 { // a new provider each time, as after a restart
				reply, code := ask(t.Context(), parse(t, story), &provider.Request{Messages: c.talk})
				m := reply.Message()
				if got := m.Text(protocol.PartProse) + code; got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestTiming(t *testing.T) {
	const text = `{"turns": [{"replies": [{"text": "abcdef", "chunkSize": 2, "delayMs": 100, "stall": true}]}]}`
	t.Run("runtime/M07 delays and stalls end with ctx", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, limit := range []time.Duration{150 * time.Millisecond, time.Hour} {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				begin := time.Now()
				reply, code := ask(ctx, parse(t, text), &provider.Request{Messages: talk("u:hi")})
				cancel()
				if took := time.Since(begin); took != limit || code != "cancelled" {
					t.Errorf("ended after %v with %q, want %v and cancelled", took, code, limit)
				}
				want := map[time.Duration]string{150 * time.Millisecond: "ab", time.Hour: "abcdef"}[limit]
				if m := reply.Message(); m.Text(protocol.PartProse) != want {
					t.Errorf("text %q, want %q", m.Text(protocol.PartProse), want)
				}
			}
		})
	})
}

func TestErrors(t *testing.T) {
	const text = `{"turns": [{"replies": [{"text": "done", "error":
		{"kind": "http", "code": "busy", "status": 503, "retryable": true, "retryAfterMs": 3000, "times": 2}}]}]}`
	t.Run("runtime/M07 an error of the first attempts is retried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			reply, code := ask(t.Context(), &provider.Retry{Provider: parse(t, text)}, &provider.Request{Messages: talk("u:hi")})
			if code != "" || len(reply.Attempts) != 3 || time.Since(begin) != 6*time.Second {
				t.Errorf("error %q, %d attempts in %v; want success in the third after 6s", code, len(reply.Attempts), time.Since(begin))
			}
			if got := reply.Attempts[0]; got.Status != 503 || got.Error.Code != "busy" {
				t.Errorf("first attempt %+v, want the scripted error", got)
			}
		})
	})
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "story.json")
	if err := os.WriteFile(path, []byte(story), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := scripted.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	p := scripted.New(s)
	reply, _ := ask(t.Context(), p, &provider.Request{Messages: talk("u:weather")})
	want := protocol.ToolCall{CallID: "c1", Name: "weather", Args: json.RawMessage(`{"city": "Bern"}`)}
	if d := cmp.Diff(want, *reply.Parts[1].Call); d != "" || reply.Stop != protocol.StopToolUse {
		t.Errorf("stop %q, call (-want +got):\n%s", reply.Stop, d)
	}
	if _, err := scripted.Load(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want %v", err, os.ErrNotExist)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		``,
		`{"turns": [{"replies": []}]}`,
		`{"turns": [{"replies": [{"txt": "typo"}]}]}`,
		`{"turns": [{"replies": [{"toolCalls": [{"args": {}}]}]}]}`,
		`{"turns": [{"replies": [{"delayMs": -1}]}]}`,
		`{"turns": [{"replies": [{"error": {}}]}]}`,
		`{"turns": [], "otherwise": {"match": {"lastUserContains": "a"}, "replies": [{}]}}`,
		`{"turns": []} {}`,
	} {
		if _, err := scripted.Parse([]byte(text)); err == nil {
			t.Errorf("Parse accepted %s", text)
		}
	}
}
