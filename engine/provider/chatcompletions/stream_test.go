package chatcompletions_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/chatcompletions"
	"lashd/rpc/protocol"
)

func TestStreams(t *testing.T) {
	prose := func(text string) protocol.Part { return protocol.Part{Kind: protocol.PartProse, Text: text} }
	thought := func(text string) protocol.Part { return protocol.Part{Kind: protocol.PartReasoning, Text: text} }
	call := func(id protocol.CallID, name, args string) protocol.Part {
		return protocol.Part{
			Kind: protocol.PartToolCall,
			Call: &protocol.ToolCall{CallID: id, Name: name, Args: json.RawMessage(args)},
		}
	}
	for _, c := range []struct {
		name  string
		data  []string
		parts []protocol.Part
		stop  protocol.StopReason
		usage *protocol.Usage
		code  string // of the error
	}{
		{
			"runtime/M02 text with everything around it",
			[]string{
				deltaOf(`{"role":"assistant","content":null}`), textDelta("content", "a\"\n"), textDelta("content", "b"),
				textDelta("content", "c"), textDelta("content", "d\\e"), finish("stop"),
				`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`,
				"[DONE]",
			},
			[]protocol.Part{prose("a\"\nbcd\\e")},
			protocol.StopEnd,
			&protocol.Usage{Input: 6, Output: 5, CacheRead: 4, Reasoning: 2},
			"",
		},
		{
			"part9/structured a refusal is shown, and counts as filtered",
			[]string{deltaOf(`{"role":"assistant","content":null,"refusal":""}`), textDelta("refusal", "I can"), textDelta("refusal", "not."), finish("stop"), "[DONE]"},
			[]protocol.Part{prose("I cannot.")},
			protocol.StopContentFilter, nil, "",
		},
		{
			"runtime/M02 reasoning in both spellings, once",
			[]string{
				deltaOf(`{"reasoning_content":"a","reasoning":"a"}`), textDelta("reasoning", "b"), textDelta("reasoning_content", "c"),
				textDelta("reasoning_content", "d"), textDelta("content", "e"), textDelta("reasoning_content", "f"), finish("stop"),
			},
			[]protocol.Part{thought("abcd"), prose("e"), thought("f")},
			protocol.StopEnd, nil, "",
		},
		{
			"runtime/M02 calls grow by index",
			[]string{
				deltaOf(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]}`),
				deltaOf(`{"tool_calls":[{"index":1,"id":"y","function":{"name":"g","arguments":""}}]}`),
				deltaOf(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`), finish("tool_calls"), "[DONE]",
			},
			[]protocol.Part{call("x", "f", `{"a":1}`), call("y", "g", `{}`)},
			protocol.StopToolUse, nil, "",
		},
		{
			"runtime/M02 calls that all have index 0, or none, and no ids",
			[]string{
				deltaOf(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}},{"index":0,"id":"y","function":{"name":"f","arguments":"{\"b\":2}"}}]}`),
				deltaOf(`{"tool_calls":[{"function":{"name":"g","arguments":"{}"}},{"function":{"name":"g","arguments":{"c":3}}}]}`), finish("stop"),
			},
			[]protocol.Part{call("x", "f", `{}`), call("y", "f", `{"b":2}`), call("", "g", `{}`), call("", "g", `{"c":3}`)},
			protocol.StopToolUse, nil, "",
		},
		{
			"runtime/M02 malformed arguments become a string",
			[]string{deltaOf(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]}`), finish("tool_calls")},
			[]protocol.Part{call("x", "f", `"{\"a\":"`)},
			protocol.StopToolUse, nil, "",
		},
		{
			"runtime/M02 text after a call stays after it",
			[]string{
				textDelta("content", "a"),
				deltaOf(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`), textDelta("content", "b"), finish("tool_calls"),
			},
			[]protocol.Part{prose("a"), call("x", "f", `{}`), prose("b")},
			protocol.StopToolUse, nil, "",
		},
		{"runtime/M02 the output limit", []string{textDelta("content", "a"), finish("length")}, []protocol.Part{prose("a")}, protocol.StopOutputLimit, nil, ""},
		{"runtime/M02 a content filter", []string{finish("content_filter")}, nil, protocol.StopContentFilter, nil, ""},
		{"runtime/M02 an unknown reason", []string{finish("moon")}, nil, protocol.StopUnknown, nil, ""},
		{
			"runtime/M02 a prompt that left no room",
			[]string{finish("length"), `{"usage":{"prompt_tokens":96,"completion_tokens":0}}`},
			nil, protocol.StopContextLimit, &protocol.Usage{Input: 96}, "",
		},
		{
			"runtime/M02 a prompt that left room",
			[]string{finish("length"), `{"usage":{"prompt_tokens":94,"completion_tokens":0}}`},
			nil, protocol.StopOutputLimit, &protocol.Usage{Input: 94}, "",
		},
		{
			"runtime/M02 reasoning counted beside the completion",
			[]string{finish("stop"), `{"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":20,"completion_tokens_details":{"reasoning_tokens":7}}}`},
			nil, protocol.StopEnd, &protocol.Usage{Input: 10, Output: 10, Reasoning: 7}, "",
		},
		{
			"runtime/M02 an error in the stream",
			[]string{textDelta("content", "a"), `{"usage":{"prompt_tokens":9},"error":{"message":"gone","code":502}}`},
			[]protocol.Part{prose("a")}, "", &protocol.Usage{Input: 9}, "bad_gateway",
		},
		{"runtime/M10 EOF without finish_reason is an error", []string{textDelta("content", "a")}, []protocol.Part{prose("a")}, "", nil, "ended_without_evidence"},
		{"runtime/M10 DONE alone is no evidence", []string{textDelta("content", "a"), "[DONE]"}, []protocol.Part{prose("a")}, "", nil, "ended_without_evidence"},
		{"runtime/M10 an empty answer is an error", nil, nil, "", nil, "ended_without_evidence"},
		{"runtime/M10 EOF after finish_reason is no error", []string{textDelta("content", "a"), finish("stop")}, []protocol.Part{prose("a")}, protocol.StopEnd, nil, ""},
		{"runtime/M10 a cut chunk is an error", []string{textDelta("content", "a"), `{"choices":[{"ind`}, []protocol.Part{prose("a")}, "", nil, "malformed_answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request(user("hi"))
			req.Model.ContextWindow = 100
			reply, err := ask(t.Context(), serve(t, chatcompletions.Config{}, stream(c.data...)), req)
			if d := cmp.Diff(c.parts, reply.Parts); d != "" {
				t.Errorf("parts (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.usage, reply.Usage); d != "" {
				t.Errorf("usage (-want +got):\n%s", d)
			}
			if reply.Stop != c.stop {
				t.Errorf("stop %q, want %q", reply.Stop, c.stop)
			}
			if code := codeOf(err); code != c.code {
				t.Errorf("error %v with code %q, want %q", err, code, c.code)
			}
		})
	}
}

func codeOf(e *provider.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}

func TestOtherAnswers(t *testing.T) {
	t.Run("runtime/M02 an answer in one piece", func(t *testing.T) {
		h := answer(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]},
			"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
		reply, err := ask(t.Context(), serve(t, chatcompletions.Config{}, h), request(user("hi")))
		if err != nil || len(reply.Parts) != 2 || reply.Stop != protocol.StopToolUse || reply.Usage.Output != 2 {
			t.Errorf("reply %+v, error %v; want text, a call, usage", reply, err)
		}
	})
	for name, body := range map[string]string{"a web page": "<html>login</html>", "another API": `{"status":"ok"}`} {
		t.Run("runtime/M02 "+name, func(t *testing.T) {
			_, err := ask(t.Context(), serve(t, chatcompletions.Config{}, answer(200, body)), request(user("hi")))
			if codeOf(err) != "malformed_answer" || err.Raw != body {
				t.Errorf("error %+v, want malformed_answer with the body", err)
			}
		})
	}
	t.Run("runtime/M02 an error with status 200", func(t *testing.T) {
		h := answer(200, `{"error":{"message":"slow down","code":429}}`)
		_, err := ask(t.Context(), serve(t, chatcompletions.Config{}, h), request(user("hi")))
		if err == nil || !err.Throttled || !err.Retryable {
			t.Errorf("error %+v, want a throttled one", err)
		}
	})
	t.Run("runtime/M02 comments, CRLF, no space after data, a bare error", func(t *testing.T) {
		h := answer(200, ": hello\r\n\r\nevent: x\r\ndata:"+textDelta("content", "a")+"\r\n\r\n{\"error\":\"gone\"}\r\n")
		reply, err := ask(t.Context(), serve(t, chatcompletions.Config{}, h), request(user("hi")))
		if m := reply.Message(); m.Text(protocol.PartProse) != "a" || codeOf(err) != "server_error" {
			t.Errorf("text %q, error %v; want a and server_error", m.Text(protocol.PartProse), err)
		}
	})
	t.Run("runtime/M02 a line longer than the buffer", func(t *testing.T) {
		long := strings.Repeat("wörd ", 50_000)
		reply, err := ask(t.Context(), serve(t, chatcompletions.Config{}, stream(textDelta("content", long), finish("stop"))), request(user("hi")))
		if m := reply.Message(); err != nil || m.Text(protocol.PartProse) != long {
			t.Errorf("%d bytes of text, error %v; want %d", len(m.Text(protocol.PartProse)), err, len(long))
		}
	})
}

func TestTimeouts(t *testing.T) {
	run := func(name string, h http.HandlerFunc, check func(t *testing.T, took time.Duration, reply provider.Reply, err *provider.Error)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := servePipe(t, h)
				begin := time.Now()
				reply, err := ask(t.Context(), p, request(user("hi")))
				check(t, time.Since(begin), reply, err)
			})
		})
	}
	hang := func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	run("runtime/M02 no answer", func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then does the server see that the client left
		<-r.Context().Done()
	}, func(t *testing.T, took time.Duration, _ provider.Reply, err *provider.Error) {
		if took != 300*time.Second || codeOf(err) != "request_timeout" || err.Kind != provider.KindTimeout || !err.Retryable {
			t.Errorf("error %+v after %v, want request_timeout after 300s", err, took)
		}
	})
	run("runtime/M02 a gap between chunks", func(w http.ResponseWriter, r *http.Request) {
		for range 4 { // no gap is too long
			stream(textDelta("content", "a"))(w, r)
			http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Second)
		}
		hang(w, r)
	}, func(t *testing.T, took time.Duration, _ provider.Reply, err *provider.Error) {
		if took != 420*time.Second || codeOf(err) != "chunk_timeout" || err.Kind != provider.KindTimeout {
			t.Errorf("error %+v after %v, want chunk_timeout after 300s + 120s", err, took)
		}
	})
	run("runtime/M10 a connection left open after finish_reason", func(w http.ResponseWriter, r *http.Request) {
		stream(textDelta("content", "a"), finish("stop"))(w, r)
		hang(w, r)
	}, func(t *testing.T, took time.Duration, reply provider.Reply, err *provider.Error) {
		if err != nil || reply.Stop != protocol.StopEnd || took > 6*time.Second {
			t.Errorf("stop %q, error %v after %v; want a whole reply within 6s", reply.Stop, err, took)
		}
	})
	t.Run("runtime/M02 a slow reader is no gap", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := servePipe(t, stream(textDelta("content", "a"), textDelta("content", "b"), finish("stop"), "[DONE]"))
			for chunk, err := range p.Stream(t.Context(), request(user("hi"))) {
				if err != nil {
					t.Error(err)
				}
				if chunk.Stop == "" {
					time.Sleep(time.Hour)
				}
			}
		})
	})
	t.Run("runtime/M02 a delta is passed on as soon as its line has arrived", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := servePipe(t, func(w http.ResponseWriter, r *http.Request) {
				for range 3 {
					fmt.Fprintf(w, "data: %s\n", textDelta("content", "a")) // without the empty line
					http.NewResponseController(w).Flush()
					time.Sleep(time.Second)
				}
				stream(finish("stop"))(w, r)
			})
			begin, n := time.Now(), 0
			for chunk := range p.Stream(t.Context(), request(user("hi"))) {
				if chunk.Text == "" {
					continue
				}
				if at := time.Since(begin); at != time.Duration(n)*time.Second {
					t.Errorf("delta %d came after %v, want %ds", n, at, n)
				}
				n++
			}
		})
	})
}

func TestConnectionIsKept(t *testing.T) {
	addresses := map[string]bool{}
	p := serve(t, chatcompletions.Config{}, func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		stream(textDelta("content", "a"), finish("stop"), "[DONE]")(w, r)
		http.NewResponseController(w).Flush()
	})
	for range 5 {
		for chunk, err := range p.Stream(t.Context(), request(user("hi"))) {
			if err != nil {
				t.Fatal(err)
			}
			if chunk.Stop != "" {
				break // as a reader does that has all it wants
			}
		}
	}
	if len(addresses) != 1 {
		t.Errorf("5 calls over %d connections, want 1", len(addresses))
	}
}

func TestReplayGoesBackOnItsRouteOnly(t *testing.T) {
	t.Run("runtime/M12 reasoning is stamped and sent back on its route", func(t *testing.T) {
		var bodies []string
		p := serve(t, chatcompletions.Config{ReplayReasoning: true}, func(w http.ResponseWriter, r *http.Request) {
			bodies = append(bodies, read(t, r))
			stream(textDelta("reasoning_content", "hm "), textDelta("reasoning_content", "so"), textDelta("content", "a"), finish("stop"))(w, r)
		})
		reply, err := ask(t.Context(), p, request(user("hi")))
		if err != nil {
			t.Fatal(err)
		}
		said := reply.Message()
		foreign := reply.Message()
		foreign.Parts = append([]protocol.Part{}, foreign.Parts...)
		foreign.Parts[0].Route = "elsewhere"
		for _, m := range []*protocol.Message{&said, &foreign} {
			if _, err := ask(t.Context(), p, request(user("hi"), m)); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(bodies[1], `"reasoning_content":"hm so"`) || strings.Contains(bodies[2], "hm so") {
			t.Errorf("own route got %s\nforeign route got %s", bodies[1], bodies[2])
		}
	})
}

// TestRunningText has a long text whose chunks are alike, with some that are not: nothing of these is lost.
func TestRunningText(t *testing.T) {
	const head = `{"id":"c","choices":[{"index":0,"delta":{"content":"`
	const tail = `"},"finish_reason":null}]}`
	chunks := []string{
		head + "a" + tail, head + "b" + tail, head + "c" + tail, head + "d" + tail, // the shortcut is ready
		head + `\"e\"\n` + tail, head + "\u00e9" + tail, head + tail,
		head + `f"},"x":{"y":"z` + tail,
		`{"id":"c","choices":[{"index":1,"delta":{"content":"other` + tail,
		`{"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"hm` + tail,
		head + "g" + tail,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"h","tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}`,
		head + "i" + tail,
		head + `j"},"finish_reason":"stop"}]}`,
	}
	got, err := ask(t.Context(), serve(t, chatcompletions.Config{}, stream(chunks...)), request(user("hi")))
	want := []protocol.Part{
		{Kind: protocol.PartProse, Text: "abcd\"e\"\n\u00e9f"}, {Kind: protocol.PartReasoning, Text: "hm"}, {Kind: protocol.PartProse, Text: "gh"},
		{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "x", Name: "f", Args: json.RawMessage("{}")}}, {Kind: protocol.PartProse, Text: "ij"},
	}
	if d := cmp.Diff(want, got.Parts); d != "" || err != nil || got.Stop != protocol.StopToolUse {
		t.Errorf("runtime/M02 stop %q, error %v, parts (-want +got):\n%s", got.Stop, err, d)
	}
}
