package providertest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

// canned returns a provider whose server answers from memory.
func (d *dialect) canned(answer string) provider.Provider {
	return d.open(endpoint.Config{BaseURL: "http://model.test", HTTPClient: &http.Client{Transport: providertest.Canned(answer)}})
}

// BenchmarkStream reads replies of 10,000 deltas.
func BenchmarkStream(b *testing.B) {
	for i := range dialects {
		d := &dialects[i]
		b.Run(d.name, func(b *testing.B) {
			var answer strings.Builder
			answer.WriteString(d.begin)
			for i := range 10_000 {
				answer.WriteString(d.delta(fmt.Sprint(" word", i%10)))
			}
			answer.WriteString(d.finish)
			p := d.canned(answer.String())
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				for chunk, err := range p.Stream(b.Context(), providertest.Request()) {
					if err != nil {
						b.Fatal(err)
					}
					if chunk.Text != "" {
						n++
					}
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deltas/s")
		})
	}
}

// BenchmarkCall is a call with a history of 2,000 messages, 2.2 MB, and no text in the answer. In a kept session the same messages were
// sent before.
func BenchmarkCall(b *testing.B) {
	req := providertest.Request()
	for i := range 2000 {
		m := user(strings.Repeat("some text of a message\n", 50))
		if i%2 == 1 {
			m = &protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{prose(m.Parts[0].Text)}}
		}
		req.Messages = append(req.Messages, m)
	}
	for i := range dialects {
		d := &dialects[i]
		run := func(name string, session func(i int) protocol.SessionID) {
			b.Run(d.name+" "+name, func(b *testing.B) {
				p := d.canned(d.begin + d.finish)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					req.Scope.SessionID = session(i)
					i++
					for _, err := range p.Stream(b.Context(), req) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
		run("kept", func(int) protocol.SessionID { return "ses_1" })
		run("new", func(i int) protocol.SessionID { return protocol.SessionID(fmt.Sprint(i)) })
	}
}
