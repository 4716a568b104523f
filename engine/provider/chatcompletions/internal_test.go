package chatcompletions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// FuzzTemplate checks that a template reads the second chunk exactly as encoding/json does.
func FuzzTemplate(f *testing.F) {
	const chunkForm = `{"id":"a","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}],"x":"%s"}`
	f.Add(fmt.Sprintf(chunkForm, "a", "a"), fmt.Sprintf(chunkForm, "b", "a"))
	f.Add(fmt.Sprintf(chunkForm, "a", "b"), fmt.Sprintf(chunkForm, "ä→", "b"))
	f.Add(fmt.Sprintf(chunkForm, "a", "b"), fmt.Sprintf(chunkForm, `\"`, "b"))
	f.Add(fmt.Sprintf(chunkForm, "a", "b"), fmt.Sprintf(chunkForm, `c"},"index":1,"d":{"e":"f`, "b"))
	f.Add(fmt.Sprintf(chunkForm, "a", "b"), fmt.Sprintf(chunkForm, "\xff\x01", "b"))
	f.Add(fmt.Sprintf(chunkForm, "a", "b"), strings.Replace(fmt.Sprintf(chunkForm, "c", "b"), `"index":0`, `"index":1`, 1))
	f.Add(fmt.Sprintf(chunkForm, "a", "b"), strings.Replace(fmt.Sprintf(chunkForm, "c", "b"), "null", `"stop"`, 1))
	f.Add(`{"choices":[{"delta":{"reasoning_content":"a"}}]}`, `{"choices":[{"delta":{"reasoning_content":"b"}}]}`)
	f.Add(`{"choices":[{"delta":{"content":"a"},"index":1}]}`, `{"choices":[{"delta":{"content":"b"},"index":1}]}`)
	f.Add(`{"choices":[{"delta":{"content":"a","refusal":"n"}}]}`, `{"choices":[{"delta":{"content":"b","refusal":"n"}}]}`)
	f.Add(`{"choices":[{"delta":{"content":"a"},"message":{"content":"m"}}]}`, `{"choices":[{"delta":{"content":"b"},"message":{"content":"m"}}]}`)
	f.Add(`{"error":"e","choices":[{"delta":{"content":"a"}}]}`, `{"error":"e","choices":[{"delta":{"content":"b"}}]}`)
	f.Add(`{"choices":[{"delta":{"content":"a","reasoning_content":"a"}}]}`, `{"choices":[{"delta":{"content":"b","reasoning_content":"a"}}]}`)
	f.Add(`{"choices":[{"delta":{"content":"a","content":"a"}}]}`, `{"choices":[{"delta":{"content":"b","content":"c"}}]}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var c chunk
		if json.Unmarshal([]byte(first), &c) != nil {
			return
		}
		tpl := template{credit: templateCredit, met: templateAfter} // it learns from a first chunk only in this test
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
			lines := bufio.NewScanner(bytes.NewReader(body))
			for lines.Scan() {
				if len(lines.Bytes()) > 0 {
					n++
				}
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deltas/s")
	})
	b.Run("chunks alike", func(b *testing.B) { benchStream(b, false) })
	b.Run("chunks all different", func(b *testing.B) { benchStream(b, true) })
	b.Run("chunks alike through Retry", func(b *testing.B) {
		p := New(Config{Config: endpoint.Config{BaseURL: "http://x.test", HTTPClient: &http.Client{Transport: canned(benchBody(false))}}})
		readAll(b, &provider.Retry{Provider: p})
	})
}

func benchStream(b *testing.B, vary bool) {
	readAll(b, New(Config{Config: endpoint.Config{BaseURL: "http://x.test", HTTPClient: &http.Client{Transport: canned(benchBody(vary))}}}))
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
	p := New(Config{Config: endpoint.Config{BaseURL: "http://x.test"}})
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
