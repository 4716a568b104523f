package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func FuzzLines(f *testing.F) {
	f.Add([]byte("data: {}\n\n: x\r\ndata:[DONE]"), uint8(1))
	f.Add(bytes.Repeat([]byte("data: abc"), 100), uint8(7))
	f.Add([]byte("\n\r\n\r"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		const limit = 500
		l := &lineReader{in: bufio.NewReaderSize(iotest.HalfReader(bytes.NewReader(in)), 16+int(size)), max: limit}
		var got [][]byte
		for {
			line, err := l.next()
			if err != nil {
				if errors.Is(err, errLongLine) && len(in) > limit {
					return
				}
				if !errors.Is(err, io.EOF) {
					t.Fatalf("error %v for %q", err, in)
				}
				break
			}
			payload(line) // must not panic
			got = append(got, bytes.Clone(line))
		}
		want := bytes.Split(in, []byte("\n"))
		if len(want[len(want)-1]) == 0 {
			want = want[:len(want)-1]
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines of %q, want %d", len(got), in, len(want))
		}
		for i := range want {
			if w := bytes.TrimSuffix(want[i], []byte("\r")); !bytes.Equal(got[i], w) {
				t.Errorf("line %d is %q, want %q", i, got[i], w)
			}
		}
	})
}

// FuzzTemplate checks that a template reads the second chunk exactly as encoding/json does.
func FuzzTemplate(f *testing.F) {
	const chunkForm = `{"id":"a","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}],"x":"%s"}`
	f.Add(fmt.Sprintf(chunkForm, "a", "a"), fmt.Sprintf(chunkForm, "b", "a"))
	f.Add(fmt.Sprintf(chunkForm, "a", "b"), fmt.Sprintf(chunkForm, "ä→", "b"))
	f.Add(fmt.Sprintf(chunkForm, "a", "b"), fmt.Sprintf(chunkForm, `\"`, "b"))
	f.Add(`{"choices":[{"delta":{"content":"a","reasoning_content":"a"}}]}`, `{"choices":[{"delta":{"content":"b","reasoning_content":"a"}}]}`)
	f.Add(`{"choices":[{"delta":{"content":"a","content":"a"}}]}`, `{"choices":[{"delta":{"content":"b","content":"c"}}]}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var c chunk
		if json.Unmarshal([]byte(first), &c) != nil {
			return
		}
		tpl := template{credit: templateCredit}
		tpl.learn([]byte(first), &c)
		got, ok := tpl.cut([]byte(second))
		if !ok {
			return
		}
		var d chunk
		if err := json.Unmarshal([]byte(second), &d); err != nil {
			t.Fatalf("the template took %q, which is %v", second, err)
		}
		if text, reasoning, ok := d.text(); !ok || text != string(got) || reasoning != tpl.reasoning {
			t.Errorf("the template of %q read %q of %q, want %q", first, got, second, text)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("a\"\\\n\t\r\x00\x7f\u2028\xff→")
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		if err := json.Unmarshal(quote(nil, text), &got); err != nil {
			t.Fatalf("quote(%q) is no JSON: %v", text, err)
		}
		want := strings.ToValidUTF8(text, "\uFFFD")
		if utf8.ValidString(text) && got != want || !utf8.ValidString(got) {
			t.Errorf("quote(%q) reads as %q", text, got)
		}
	})
}

func TestLongLineIsRefused(t *testing.T) {
	l := &lineReader{in: bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 1000)), 16), max: 100}
	if _, err := l.next(); !errors.Is(err, errLongLine) {
		t.Errorf("error %v, want %v", err, errLongLine)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var h history
	big := protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: strings.Repeat("x", 3<<20)}}}
	for i := range 200 {
		m := big
		if i < 100 {
			m.Parts = []protocol.Part{{Kind: protocol.PartText, Text: "small"}}
		}
		h.encode(historyKey{protocol.SessionID(fmt.Sprint(i)), "m"}, []*protocol.Message{&m}, "")
		sum := 0
		for e := h.recent.Front(); e != nil; e = e.Next() {
			sum += cap(e.Value.(*thread).data)
		}
		if n := h.recent.Len(); n > historySessions || n != len(h.threads) || sum > historyBytes || sum != h.bytes {
			t.Fatalf("after %d sessions: %d kept, %d in the map, %d bytes of %d counted", i+1, n, len(h.threads), sum, h.bytes)
		}
	}
	if h.recent.Len() < 2 {
		t.Errorf("%d sessions kept, want several", h.recent.Len())
	}
}

// canned is a transport whose answers come from memory.
type canned []byte

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(c)), Request: req}, nil
}

const benchDeltas = 10_000

func benchBody(vary bool) []byte {
	var b bytes.Buffer
	for i := range benchDeltas {
		pad := ""
		if vary {
			pad = fmt.Sprintf(`,"obfuscation":"%d"`, i)
		}
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-AbC123","object":"chat.completion.chunk","created":1760000000,"model":"gpt-x",`+
			`"service_tier":"default","system_fingerprint":"fp_123","choices":[{"index":0,"delta":{"content":" word%d"},`+
			`"logprobs":null,"finish_reason":null}],"usage":null%s}`+"\n\n", i%10, pad)
	}
	fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	return b.Bytes()
}

func BenchmarkStream(b *testing.B) {
	b.Run("floor that only splits lines", func(b *testing.B) {
		body := benchBody(false)
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			l := newLineReader(bytes.NewReader(body))
			for {
				line, err := l.next()
				if err != nil {
					break
				}
				if len(line) > 0 {
					n++
				}
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deltas/s")
	})
	b.Run("chunks alike", func(b *testing.B) { benchStream(b, false) })
	b.Run("chunks all different", func(b *testing.B) { benchStream(b, true) })
	b.Run("chunks alike through Retry", func(b *testing.B) {
		p := New(Config{BaseURL: "http://x.test", HTTPClient: &http.Client{Transport: canned(benchBody(false))}})
		readAll(b, &provider.Retry{Provider: p})
	})
}

func benchStream(b *testing.B, vary bool) {
	readAll(b, New(Config{BaseURL: "http://x.test", HTTPClient: &http.Client{Transport: canned(benchBody(vary))}}))
}

func readAll(b *testing.B, p provider.Provider) {
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for chunk, err := range p.Stream(b.Context(), &provider.Request{}) {
			if err != nil {
				b.Fatal(err)
			}
			if chunk.Text != "" {
				n++
			}
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deltas/s")
}

// BenchmarkEncode is a turn of a session with a long history: one message is new.
func BenchmarkEncode(b *testing.B) {
	p := New(Config{BaseURL: "http://x.test"})
	req := &provider.Request{Scope: provider.Scope{SessionID: "ses_1"}}
	for range 2000 {
		req.Messages = append(req.Messages, &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{
			{Kind: protocol.PartText, Text: strings.Repeat("some text of a message\n", 50)},
		}})
	}
	run := func(name string, session func(i int) protocol.SessionID) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				req.Scope.SessionID = session(i)
				i++
				if _, err := p.encode(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("kept", func(int) protocol.SessionID { return "ses_1" })
	run("new", func(i int) protocol.SessionID { return protocol.SessionID(fmt.Sprint(i)) })
}
