package fakemodel

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultClient.CloseIdleConnections()
		os.Exit(code)
	}))
}

func start(t testing.TB, steps ...Step) *Server {
	t.Helper()
	s, err := Start(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// msg builds a message of a request.
func msg(role, content string) map[string]any {
	return map[string]any{"content": content, "role": role}
}

func post(t testing.TB, s *Server, stream bool, messages ...any) *http.Response {
	t.Helper()
	resp, err := send(t.Context(), s, stream, messages...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func send(ctx context.Context, s *Server, stream bool, messages ...any) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{
		"model":          "m",
		"stream":         stream,
		"stream_options": map[string]any{"include_usage": true},
		"messages":       messages,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer sk-secret")
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// got is what a client makes of a stream.
type got struct {
	text, reasoning, finish string
	calls                   []wireCall
	pieces                  int // chunks with a tool call
	usage                   *Usage
	done                    bool
	deltas                  int
	err                     error // of the transport or of a chunk
}

func read(r io.Reader) (g got) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if err != io.EOF {
				g.err = err
			}
			return g
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			g.done = true
			continue
		}
		var c struct {
			Choices []struct {
				Delta  delta  `json:"delta"`
				Finish string `json:"finish_reason"`
			} `json:"choices"`
			Usage *Usage `json:"usage"`
		}
		if err := json.Unmarshal(data, &c); err != nil {
			g.err = err
			return g
		}
		g.usage = cmp.Or(c.Usage, g.usage)
		for _, ch := range c.Choices {
			g.finish = cmp.Or(ch.Finish, g.finish)
			g.text += ch.Delta.Content
			g.reasoning += ch.Delta.Reasoning
			if ch.Delta.Content != "" {
				g.deltas++
			}
			for _, k := range ch.Delta.Calls {
				g.pieces++
				if *k.Index == len(g.calls) {
					g.calls = append(g.calls, k)
				} else {
					g.calls[*k.Index].Function.Args += k.Function.Args
				}
			}
		}
	}
}

func TestStreamedStep(t *testing.T) {
	usage := &Usage{Prompt: 7, Completion: 3}
	usage.PromptDetails.Cached = 5
	s := start(t, Step{
		Parts: []Part{
			{Reasoning: "hm "}, {Reasoning: "so"},
			{Text: "a \"quoted\"\n"}, {Text: "é"},
			{Calls: []Call{{Name: "shell", Args: `{"command":"ls é"}`, Pieces: 4}, {ID: "mine", Name: "read", Args: `{"path":"x"}`}}},
			{Calls: []Call{{Name: "now"}}},
		},
		Usage: usage,
	})
	g := read(post(t, s, true, msg("user", "hi")).Body)
	if g.err != nil || g.reasoning != "hm so" || g.text != "a \"quoted\"\né" || g.finish != "tool_calls" || !g.done {
		t.Errorf("stream = %+v", g)
	}
	if g.usage == nil || g.usage.Total != 10 || g.usage.PromptDetails.Cached != 5 {
		t.Errorf("usage = %+v, want 10 tokens, 5 cached", g.usage)
	}
	if len(g.calls) != 3 {
		t.Fatalf("calls = %+v, want 3", g.calls)
	}
	for i, want := range []wireFunction{{"shell", `{"command":"ls é"}`}, {"read", `{"path":"x"}`}, {"now", ""}} {
		if g.calls[i].Function != want || g.calls[i].ID == "" {
			t.Errorf("call %d = %+v, want %+v with an id", i, g.calls[i], want)
		}
	}
	if g.calls[1].ID != "mine" || g.pieces != 3+4+2+1 {
		t.Errorf("second call has id %q and all have %d pieces, want mine and 10", g.calls[1].ID, g.pieces)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestPlainStep(t *testing.T) {
	s := start(t, Step{Parts: []Part{{Text: "one "}, {Text: "two"}, {Calls: []Call{{Name: "read", Args: "{}"}}}}, Finish: "length"})
	var reply struct {
		Choices []struct {
			Message message `json:"message"`
			Finish  string  `json:"finish_reason"`
		} `json:"choices"`
		Usage *Usage `json:"usage"`
	}
	if err := json.NewDecoder(post(t, s, false, msg("user", "hi")).Body).Decode(&reply); err != nil {
		t.Fatal(err)
	}
	c := reply.Choices[0]
	if c.Message.Content != "one two" || len(c.Message.Calls) != 1 || c.Finish != "length" || reply.Usage == nil {
		t.Errorf("reply = %+v", reply)
	}
}

func TestFaults(t *testing.T) {
	say := []Part{{Text: "partial"}}
	tests := []struct {
		name string
		step Step
		want func(got) bool
	}{
		{"cut", Step{Parts: say, End: Cut}, func(g got) bool { return g.err == nil && g.finish == "" && !g.done }},
		{"reset", Step{Parts: say, End: Reset}, func(g got) bool { return errors.Is(g.err, syscall.ECONNRESET) && g.finish == "" }},
		{"no done", Step{Parts: say, End: NoDone}, func(g got) bool { return g.err == nil && g.finish == "stop" && !g.done }},
		{"malformed", Step{Parts: append(say, Part{Raw: `data: {"choices":[{`})}, func(g got) bool {
			_, ok := errors.AsType[*json.SyntaxError](g.err)
			return ok
		}},
		{"comment", Step{Parts: append(say, Part{Raw: ": keep-alive"})}, func(g got) bool { return g.err == nil && g.done }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, tt.step)
			g := read(post(t, s, true, msg("user", "hi")).Body)
			if g.text != "partial" || !tt.want(g) {
				t.Errorf("stream = %+v", g)
			}
		})
	}
}

func TestPlainFaults(t *testing.T) {
	for _, end := range []End{Cut, Reset} {
		t.Run(string(end), func(t *testing.T) {
			s := start(t, Step{Parts: []Part{{Text: "partial"}}, End: end})
			resp := post(t, s, false, msg("user", "hi"))
			if b, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("body = %s, want an error before its end", b)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	s := start(t, Step{Status: 429, RetryAfter: "2"}, Step{Status: 503, Body: "<html>busy</html>"}, Say("fine"))
	resp := post(t, s, true, msg("user", "hi"))
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "2" || !bytes.Contains(b, []byte(`"error"`)) {
		t.Errorf("first = %s, Retry-After %q, %s", resp.Status, resp.Header.Get("Retry-After"), b)
	}
	resp = post(t, s, true, msg("user", "hi"))
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != 503 || string(b) != "<html>busy</html>" {
		t.Errorf("second = %s, %s", resp.Status, b)
	}
	if g := read(post(t, s, true, msg("user", "hi")).Body); g.text != "fine" {
		t.Errorf("third = %+v, want the answer", g)
	}
}

func TestStall(t *testing.T) {
	stalled := Step{Parts: []Part{{Text: "a"}, {Stall: true}, {Text: "b"}}}

	t.Run("release", func(t *testing.T) {
		s := start(t, stalled)
		resp := post(t, s, true, msg("user", "hi"))
		s.Release()
		if g := read(resp.Body); g.text != "ab" || !g.done {
			t.Errorf("stream = %+v, want all after the release", g)
		}
	})
	t.Run("client goes", func(t *testing.T) {
		s := start(t, Step{Parts: []Part{{Stall: true}}})
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := send(ctx, s, true, msg("user", "hi")) // no headers come, so no response to close
			failed <- err
		}()
		if err := s.Await(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("request = %v, want canceled", err)
		}
	})
	t.Run("close", func(t *testing.T) {
		s := start(t, stalled)
		resp := post(t, s, true, msg("user", "hi"))
		s.Close()
		if g := read(resp.Body); g.done || g.finish != "" {
			t.Errorf("stream = %+v, want it broken off", g)
		}
	})
}

func TestPauseIsVirtual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Step{Parts: []Part{{Text: "a"}, {PauseMS: 60_000}, {Text: "b"}}})
		defer s.Close()
		client, server := net.Pipe()
		hs := &http.Server{Handler: s}
		defer hs.Close()
		go hs.Serve(&single{conn: server, closed: make(chan struct{})})
		begin := time.Now()
		const body = `{"stream":true,"messages":[{"role":"user","content":"hello"}]}`
		fmt.Fprintf(client, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		g := read(resp.Body)
		client.Close()
		if d := time.Since(begin); g.text != "ab" || d != time.Minute {
			t.Errorf("stream = %+v after %v, want ab after a minute", g, d)
		}
	})
}

// single is a listener with one connection.
type single struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *single) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *single) Close() error   { close(l.closed); return nil }
func (l *single) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestQueueMatches(t *testing.T) {
	first, second := Say("for alpha"), Say("after the tool")
	first.When = When{User: "alpha"}
	second.When = When{Results: new(1)}
	s := start(t, first, second)
	if g := read(post(t, s, true, msg("user", "x"), msg("tool", "1")).Body); g.text != "after the tool" {
		t.Errorf("request with a tool result got %q", g.text)
	}
	if resp := post(t, s, true, msg("user", "beta")); resp.StatusCode != 400 {
		t.Errorf("unscripted request got %s, want 400", resp.Status)
	}
	err := s.Check()
	for _, want := range []string{`0 tool results after "beta"`, "1 steps left", `user "alpha"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check = %v, want it to say %s", err, want)
		}
	}
}

func TestMarker(t *testing.T) {
	s := start(t)
	ask := func(messages ...any) got { return read(post(t, s, true, messages...).Body) }

	g := ask(msg("user", "old [[fake deltas=9]]"), msg("assistant", "x"), msg("user", "go [[bench deltas=5 size=10 flush=2]]"))
	if g.deltas != 5 || len(g.text) != 50 || g.finish != "stop" || g.usage == nil {
		t.Errorf("deltas=5 size=10: %d deltas, %d bytes, %+v", g.deltas, len(g.text), g)
	}
	if g := ask(msg("user", "old [[fake deltas=9]]"), msg("assistant", "x"), msg("user", "plain")); g.text != "ok" {
		t.Errorf("marker of an older message was used: %q", g.text)
	}

	call := msg("user", ToolMarker("shell", `{"command":"true"}`))
	g = ask(call)
	if len(g.calls) != 1 || g.calls[0].Function != (wireFunction{"shell", `{"command":"true"}`}) {
		t.Errorf("tool marker = %+v", g.calls)
	}
	// The result repeats a marker, as reading a file with one would.
	if g = ask(call, msg("assistant", ""), msg("tool", `out [[fake deltas=7]] "role":"user"`)); len(g.calls) != 0 || g.deltas != 1 {
		t.Errorf("after the tool = %+v, want text", g)
	}
	if g = ask(msg("user", "[[fake tool=shell args64=e30 rounds=2]]"), msg("tool", "")); len(g.calls) != 1 {
		t.Errorf("second round = %+v, want another call", g)
	}
	many := msg("user", "[[fake tool=shell args64=e30 calls=3 think=2 size=4]]")
	if g = ask(many); len(g.calls) != 3 || g.reasoning != "" {
		t.Errorf("three calls = %+v", g)
	}
	if g = ask(many, msg("assistant", ""), msg("tool", ""), msg("tool", ""), msg("tool", "")); len(g.calls) != 0 || len(g.reasoning) != 8 || len(g.text) != 4 {
		t.Errorf("after three calls = %+v, want 8 bytes of reasoning and text", g)
	}
	if resp := post(t, s, true, msg("user", "[[fake detlas=5]]")); resp.StatusCode != 400 {
		t.Errorf("misspelled marker got %s, want 400", resp.Status)
	}

	s.Reset()
	ask(msg("user", Marker(3, 6, time.Millisecond)))
	if r := s.Requests(); len(r) != 1 || len(r[0].Sent) != 3 || r[0].Sent[2].Sub(r[0].Sent[0]) < 2*time.Millisecond {
		t.Errorf("paced request = %+v, want 3 stamps a millisecond apart", r)
	}
}

func TestRequestsAreRecorded(t *testing.T) {
	s := start(t)
	parts := map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "a"}, map[string]any{"type": "text", "text": "b"}}}
	read(post(t, s, true, msg("system", "be brief"), parts).Body)
	list := s.Requests()
	if len(list) != 1 {
		t.Fatalf("%d requests, want 1", len(list))
	}
	r := list[0]
	if r.Path != "/v1/chat/completions" || !r.Authorized || strings.Contains(fmt.Sprint(r.Header), "secret") {
		t.Errorf("request = %s, authorized %v, headers %v", r.Path, r.Authorized, r.Header)
	}
	if r.Chat.Model != "m" || !r.Chat.Stream || len(r.Chat.Messages) != 2 || r.Chat.Messages[1].Content != "ab" {
		t.Errorf("chat = %+v", r.Chat)
	}
	if r.Size != len(r.Body) || r.Start.IsZero() || r.Read.Before(r.Start) {
		t.Errorf("size %d of %d, start %v, read %v", r.Size, len(r.Body), r.Start, r.Read)
	}
}

func TestOldBodiesAreDropped(t *testing.T) {
	s := New()
	for range 3 {
		s.record(&Request{API: ChatAPI, Body: make([]byte, keptBodies/2+1), Size: keptBodies/2 + 1})
	}
	list := s.Requests()
	if list[0].Body != nil || list[1].Body != nil || list[2].Body == nil || list[0].Size == 0 {
		t.Errorf("bodies = %d, %d, %d bytes; want only the last kept", len(list[0].Body), len(list[1].Body), len(list[2].Body))
	}
}

func TestSplitMessages(t *testing.T) {
	tests := []struct {
		body, rest string
		want       []string
	}{
		{`{"a":"messages","messages":[{"c":"x"},{"c":["]}"]}],"b":1}`, `{"a":"messages","messages":[],"b":1}`, []string{`{"c":"x"}`, `{"c":["]}"]}`}},
		{`{"x":{"messages":[{}]},"messages" : [ {"c":"\\"} , {"c":"\"}]"} ] }`, `{"x":{"messages":[{}]},"messages" : [] }`, []string{`{"c":"\\"}`, `{"c":"\"}]"}`}},
		{`{"messages":[]}`, `{"messages":[]}`, nil},
		{`{"messages":[{"c":"unterminated`, ``, nil},
		{``, ``, nil},
	}
	for _, tt := range tests {
		list, rest := splitMessages([]byte(tt.body), "messages")
		if string(rest) != tt.rest || len(list) != len(tt.want) {
			t.Errorf("splitMessages(%s) = %s, %s; want %s, %s", tt.body, list, rest, tt.want, tt.rest)
			continue
		}
		for i, m := range list {
			if string(m) != tt.want[i] {
				t.Errorf("splitMessages(%s): message %d = %s, want %s", tt.body, i, m, tt.want[i])
			}
		}
	}
}

func TestReadSteps(t *testing.T) {
	steps, err := ReadSteps(strings.NewReader(`[
		{"when": {"user": "a", "results": 0}, "parts": [{"text": "x"}, {"calls": [{"name": "shell", "args": "{}"}]}, {"pauseMs": 5}], "usage": {"prompt_tokens": 9}},
		{"status": 429, "retryAfter": "1"},
		{"end": "cut"}]`))
	if err != nil || len(steps) != 3 || *steps[0].When.Results != 0 || steps[0].Usage.Prompt != 9 || steps[2].End != Cut {
		t.Errorf("steps = %+v, %v", steps, err)
	}
	for _, bad := range []string{`[{"txt":"x"}]`, `[{"end":"slowly"}]`, `{`} {
		if _, err := ReadSteps(strings.NewReader(bad)); err == nil {
			t.Errorf("ReadSteps(%s) gave no error", bad)
		}
	}
}

func TestModels(t *testing.T) {
	s := start(t)
	resp, err := http.Get(s.URL + "/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !bytes.Contains(b, []byte(`"object":"list"`)) {
		t.Errorf("models = %s", b)
	}
}

func BenchmarkStream(b *testing.B) {
	const deltas = 100_000
	for _, flush := range []int{1, 64} {
		b.Run(fmt.Sprintf("flush=%d", flush), func(b *testing.B) {
			s := start(b)
			for b.Loop() {
				resp := post(b, s, true, msg("user", fmt.Sprintf("[[fake deltas=%d flush=%d]]", deltas, flush)))
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(deltas*float64(b.N)/b.Elapsed().Seconds(), "deltas/s")
		})
	}
}

// BenchmarkLongHistory is what the server itself adds to a request of 850 kB.
func BenchmarkLongHistory(b *testing.B) {
	var history []any
	for range 200 {
		history = append(history, msg("user", "q"), msg("assistant", strings.Repeat("word ", 850)))
	}
	body, err := json.Marshal(map[string]any{"messages": append(history, msg("user", "[[fake]]"))})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := parseTail(&Request{API: ChatAPI, Body: body}); err != nil {
			b.Fatal(err)
		}
	}
}
