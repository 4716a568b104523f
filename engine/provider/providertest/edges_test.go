package providertest_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

// TestLeave has the reader of each recorded reply leave at each chunk. A provider that ignores this would call it again, and panic.
func TestLeave(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		for _, name := range []string{"text", "reasoning", "calls", "interleaved", "limit", "overloaded"} {
			p := d.serve(t, endpoint.Config{}, replay(d.recorded(t, name)))
			for n, seen := 1, 0; seen == n-1; n++ {
				seen = 0
				for range p.Stream(t.Context(), providertest.Request()) {
					if seen++; seen == n {
						break
					}
				}
				if seen < n {
					break // the reply has fewer chunks: every place was tried
				}
			}
		}
	})
}

// TestUnreadableAttachment has an attachment whose contents cannot be read at first. Nothing is sent then, and the next call is whole.
func TestUnreadableAttachment(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		rec := providertest.Record(t, "")
		p := d.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
		req := providertest.Request()
		req.Messages = append(req.Messages, &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{
			{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Type: "image/png", Digest: "sha256:1"}},
		}})
		req.Contents = func(protocol.Digest) ([]byte, error) { return nil, errors.New("the disk is gone") }
		if body, _, code := rec.Sent(t, p, req); code != "attachment_unreadable" || body != "" {
			t.Errorf("runtime/S15 error %q after sending %q, want attachment_unreadable and nothing sent", code, body)
		}
		req.Contents = func(protocol.Digest) ([]byte, error) { return []byte{1, 2, 3}, nil }
		if body, _, _ := rec.Sent(t, p, req); !strings.Contains(body, "AQID") {
			t.Errorf("runtime/S15 the next request lacks the image: %s", body)
		}
	})
}

// TestEmptyMessages has messages with nothing that an API could show. The vendors reject messages without contents.
func TestEmptyMessages(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		rec := providertest.Record(t, "")
		p := d.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
		want, _, _ := rec.Sent(t, p, providertest.Request())
		req := providertest.Request()
		req.Scope.SessionID = "ses_1"
		req.Messages = append(req.Messages,
			&protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{{Kind: protocol.PartProse}, {Kind: protocol.PartReasoning, Text: "hm"}}},
			&protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText}}},
			&protocol.Message{Role: protocol.RoleAssistant})
		if got, _, _ := rec.Sent(t, p, req); got != want {
			t.Errorf("runtime/M01 with empty messages the request is\n%s\nwant\n%s", got, want)
		}
	})
}

// TestLastEvent has a server that keeps the connection open after the last event of its API. Gemini has none.
func TestLastEvent(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		if d.name == "gemini" {
			return
		}
		p := d.serve(t, endpoint.Config{}, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, d.begin+d.delta("hi")+d.finish)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		began := time.Now()
		reply, err := ask(t.Context(), t, p, providertest.Request())
		if took := time.Since(began); err != nil || reply.Stop != protocol.StopEnd || took > 3*time.Second {
			t.Errorf("runtime/M10 after %v the reply is %+v, error %v", took, reply, err)
		}
	})
}

// TestErrorWithoutType has an error event that lacks the type or name of the API's error events.
func TestErrorWithoutType(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		event := `data: {"error":{"message":"too busy","type":"overloaded_error"}}` + "\n\n"
		p := d.serve(t, endpoint.Config{}, whole(strings.TrimSpace(strings.TrimPrefix(event, "data: "))))
		_, err := ask(t.Context(), t, p, providertest.Request())
		if err == nil || err.Kind != provider.KindStream || err.Code != "overloaded_error" || !err.Retryable {
			t.Errorf("runtime/M10 error %+v, want overloaded_error, which can be tried again", err)
		}
	})
}
