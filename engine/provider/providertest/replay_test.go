package providertest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

// TestReplay takes the recorded reasoning of each API as a message of the next call: it goes back as it came, and only to where it came
// from.
func TestReplay(t *testing.T) {
	native := map[string]string{
		"chatcompletions": "", // sends back no reasoning unless its settings say so
		"responses":       `{"id":"rs_0","type":"reasoning","summary":[{"type":"summary_text","text":"Let me think."}],"encrypted_content":"ZW5jMQ=="}`,
		"anthropic":       `{"type":"thinking","thinking":"Let me think.","signature":"c2lnMQ=="}`,
		"gemini":          `{"text":"Done.","thoughtSignature":"c2lnMQ=="}`,
	}
	over(t, func(t *testing.T, d *dialect) {
		rec := providertest.Record(t, bodyOf(d.recorded(t, "reasoning")))
		here := d.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
		elsewhere := d.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client, Name: "another"})
		reply, err := ask(t.Context(), t, here, providertest.Request())
		if err != nil {
			t.Fatal(err)
		}
		said := reply.Message()
		req := providertest.Request()
		req.Messages = append(req.Messages, &said, req.Messages[0])
		body, receipts, _ := rec.Sent(t, here, req)
		if !strings.Contains(body, native[d.name]) || receipts != "" {
			t.Errorf("runtime/M12 the next call lacks %s, or has receipts %q:\n%s", native[d.name], receipts, body)
		}
		body, receipts, _ = rec.Sent(t, elsewhere, req)
		for _, trace := range []string{"ZW5jMQ==", "c2lnMQ==", "Let me think."} {
			if strings.Contains(body, trace) {
				t.Errorf("runtime/M12 another route gets %q:\n%s", trace, body)
			}
		}
		if want := map[bool]string{true: "reasoning omittedOtherRoute"}[native[d.name] != ""]; receipts != want {
			t.Errorf("runtime/M12 receipts %q of another route, want %q", receipts, want)
		}
	})
}

func bodyOf(raw []byte) string {
	_, body, _ := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n\n")
	return body
}

// TestPrefix compares the bytes of consecutive calls of one session: what both have in common must be the same bytes, so that the server
// finds it in its cache.
func TestPrefix(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	const tools = `"name":"read","description":"Reads.",`
	over(t, func(t *testing.T, d *dialect) {
		rec := providertest.Record(t, d.begin+d.finish)
		p := d.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
		req := providertest.Conversation("elsewhere", json.RawMessage(`{"foreign":true}`))
		stable, passing := req.Messages[:6], req.Messages[6]
		last, before := "Plan first.", ""
		for i := range 8 {
			req.Messages = append(stable[:len(stable):len(stable)], passing)
			body, _, code := rec.Sent(t, p, req)
			if n := strings.Count(body, mark); n > 4 || code != "" {
				t.Errorf("runtime/S13 call %d has %d marks of a cached prefix, error %q; the API takes 4", i, n, code)
			}
			if at := strings.Index(body, "It is noon."); at < 0 || strings.Contains(body[at:], mark) {
				t.Errorf("runtime/S13 call %d marks a transient message, or lacks it: %s", i, body)
			}
			body = strings.ReplaceAll(body, mark, "")
			if !strings.HasPrefix(body, before) || !strings.Contains(body, tools) {
				t.Errorf("runtime/S13 call %d does not begin as the one before:\n%s\nbefore:\n%s", i, body, before)
			}
			before = body[:strings.Index(body, last)+len(last)]
			last = fmt.Sprint("input ", i, ".")
			stable = append(stable, &protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{prose(fmt.Sprint("answer ", i))}}, user(last))
		}
	})
}

func user(text string) *protocol.Message {
	return &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}
}

// TestRepeatable writes one request many times, with kept history and without.
func TestRepeatable(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		rec := providertest.Record(t, d.begin+d.finish)
		bodies := map[string]bool{}
		for range 5 {
			p := d.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
			for range 2 {
				body, _, _ := rec.Sent(t, p, providertest.Conversation("elsewhere", json.RawMessage(`{}`)))
				bodies[body] = true
			}
		}
		if len(bodies) != 1 {
			t.Errorf("runtime/S13 one request was written in %d ways", len(bodies))
		}
	})
}
