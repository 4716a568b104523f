package providertest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Recorder is a model server that keeps what it was sent and gives every request the same answer. It is safe for concurrent use.
type Recorder struct {
	URL    string       // base URL
	Client *http.Client // for the adapter; its connections are closed when the test ends

	mu     sync.Mutex
	bodies []string // guarded by mu
}

// Record starts a Recorder that answers with the body of an event stream. The test's end stops it.
// The test fails if a request has no Content-Length.
func Record(t *testing.T, answer string) *Recorder {
	t.Helper()
	r := &Recorder{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || req.ContentLength != int64(len(body)) {
			t.Errorf("request of %d bytes with Content-Length %d: %v", len(body), req.ContentLength, err)
		}
		r.mu.Lock()
		r.bodies = append(r.bodies, string(body))
		r.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, answer) // a client that left does not matter
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	r.URL, r.Client = server.URL+"/v1", &http.Client{Transport: transport}
	return r
}

// Sent makes a call and returns the body that reached the server, "" if none did, the receipts as "option fate, option fate", and the
// code of the error.
// Calls at the same time would get each other's bodies, so make one call after the other.
func (r *Recorder) Sent(t *testing.T, p provider.Provider, req *provider.Request) (body, receipts, code string) {
	t.Helper()
	r.mu.Lock()
	before := len(r.bodies) // a call that sends nothing adds no body
	r.mu.Unlock()
	var fates []string
	for chunk, err := range p.Stream(t.Context(), req) {
		for _, o := range chunk.Options {
			fates = append(fates, o.Option+" "+o.Fate)
		}
		if failure, ok := errors.AsType[*provider.Error](err); ok {
			code = failure.Code
		} else if err != nil {
			t.Errorf("error %v, want a *provider.Error", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bodies) > before {
		body = r.bodies[len(r.bodies)-1]
	}
	return body, strings.Join(fates, ", "), code
}

// SameJSON reports how a text differs from the JSON that is wanted. White space and the order of members do not count.
// Integers of any size are compared exactly.
func SameJSON(t *testing.T, want, got string) {
	t.Helper()
	if d := cmp.Diff(decode(t, want), decode(t, got)); d != "" {
		t.Errorf("JSON (-want +got):\n%s", d)
	}
}

// decode keeps numbers as they are spelled.
// decode parses JSON and fails the test if it cannot.
func decode(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber() // float64 would round large integers
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// Conversation is a request with everything that an adapter has to write: attachments of each kind, calls with ids of another API,
// results of each status and one with files, reasoning of this route with its replay state and of another one, reasoning with nothing after it, and a
// transient message. Nothing in it needs more than one spelling.
// route and replay are those of the adapter under test. The messages and tools are new with each call.
func Conversation(route string, replay json.RawMessage) *provider.Request {
	text := func(role protocol.Role, text string) *protocol.Message {
		return &protocol.Message{Role: role, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}
	}
	attached := func(a protocol.Attachment) protocol.Part {
		return protocol.Part{Kind: protocol.PartAttachment, Attachment: &a}
	}
	call := func(id protocol.CallID, name, args string) protocol.Part {
		return protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: id, Name: name, Args: json.RawMessage(args)}}
	}
	result := func(id protocol.CallID, name string, out protocol.ToolOutput) protocol.Part {
		return protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{CallID: id, Name: name, Output: out}}
	}
	passing := text(protocol.RoleUser, "It is noon.") // not in the next call, so its encoding is not kept
	passing.Origin = &protocol.Origin{Transient: true}
	return &provider.Request{
		Model:  protocol.ModelSpec{Provider: "test", ID: "model", Inputs: []protocol.Modality{protocol.ModalityImage, protocol.ModalityPDF}},
		System: "Be \"brief\" <b>.",
		Messages: []*protocol.Message{
			{Role: protocol.RoleUser, Parts: []protocol.Part{
				{Kind: protocol.PartText, Text: "See → this."},
				attached(protocol.Attachment{Type: "image/png", Data: []byte{1, 2, 3}}),
				attached(protocol.Attachment{Type: "image/jpeg", URL: "https://x.test/a.jpg"}),
				attached(protocol.Attachment{Type: "application/pdf", Name: "b.pdf", Data: []byte{4, 5, 6}}),
				attached(protocol.Attachment{Type: "text/plain", Name: "c.txt", Data: []byte("note")}), // goes to the model as text
				attached(protocol.Attachment{Type: "audio/ogg", Name: "d.ogg", Data: []byte{7}}),       // the model does not take it, so a note goes instead
			}},
			{Role: protocol.RoleAssistant, Parts: []protocol.Part{
				{Kind: protocol.PartReasoning, Text: "of another", Replay: json.RawMessage(`{"foreign":true}`), Route: "elsewhere"}, // left out: another route made it
				{Kind: protocol.PartReasoning, Text: "Hm.", Replay: replay, Route: route},                                           // goes back, as calls follow it
				{Kind: protocol.PartCommentary, Text: "I look."},
				call("functions.read:0", "read", `{"n":12345678901234567890}`), // an id and a number that some servers or parsers would change
				call("c2", "list", `"{\"cut"`),                                 // arguments that are not an object
			}},
			{Role: protocol.RoleUser, Parts: []protocol.Part{
				result("functions.read:0", "read", protocol.ToolOutput{Status: protocol.OutputSuccess, Text: "fine", Attachments: []protocol.Attachment{
					{Type: "image/png", Data: []byte{9}},
					{Type: "application/pdf", Name: "r.pdf", Data: []byte{10}},
					{Type: "text/plain", Name: "r.txt", Data: []byte("hi")},
				}}),
				result("c2", "list", protocol.Fail(protocol.FailIO, "io", "disk gone", protocol.FromTool)),
			}},
			{Role: protocol.RoleAssistant, Parts: []protocol.Part{
				{Kind: protocol.PartProse, Text: "Done."},
				{Kind: protocol.PartReasoning, Text: "And now", Replay: replay, Route: route}, // nothing follows, so some APIs reject it
			}},
			text(protocol.RoleEvent, "A process ended."), // a role that no API has
			text(protocol.RoleSystem, "Plan first."),     // in the middle of the conversation
			passing,
		},
		Tools: []protocol.ToolManifest{
			{Name: "read", Description: "Reads.", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
			{Name: "list"}, // without description and schema
		},
		Scope: provider.Scope{SessionID: "ses_1"},
	}
}

// Efforts tests that an effort which the model's settings do not allow is an error before anything is sent.
// record returns a server and a Provider that calls it. The codes are those of encoding.Effort.
func Efforts(t *testing.T, record func(t *testing.T) (*Recorder, provider.Provider)) {
	spec := &protocol.ReasoningSpec{Efforts: []string{"low", "high"}, Mandatory: true}
	for code, model := range map[string]protocol.ModelSpec{
		"unsupported_effort":      {Effort: "extreme", Reasoning: spec},
		"effort_not_configurable": {Effort: "low"},
		"effort_required":         {Reasoning: spec},
	} {
		t.Run("runtime/M08 "+code, func(t *testing.T) {
			rec, p := record(t)
			req := Request()
			req.Model = model
			if body, _, got := rec.Sent(t, p, req); got != code || body != "" {
				t.Errorf("code %q after sending %q, want %q before anything is sent", got, body, code)
			}
		})
	}
}

// Notes tests that files which do not go to the model, from inputs and from tool results, become notes and a receipt: all of them for a model that reads
// text, and those by URL if the request denies them.
// record returns a server and a Provider that calls it.
func Notes(t *testing.T, record func(t *testing.T) (*Recorder, provider.Provider)) {
	for _, c := range []struct {
		name     string
		change   func(*provider.Request)
		want     []string // in the body
		unwanted []string
	}{
		{
			"a model that reads text gets notes in place of files",
			func(r *provider.Request) { r.Model.Inputs = []protocol.Modality{protocol.ModalityText} },
			[]string{"[attachment, image/png: this model cannot read it]", `fine\n[attachment, image/png: this model cannot read it]\n[attachment r.pdf, application/pdf: this model cannot read it]\n[attachment r.txt]\nhi`},
			[]string{"AQID", "CQ==", "Cg==", "x.test"},
		},
		{
			"a URL goes as a note if the configuration denies URLs",
			func(r *provider.Request) { r.DenyURLs = true },
			[]string{"[attachment, image/jpeg: the configuration of lashd does not allow attachments by URL]", "AQID", "CQ=="},
			[]string{"x.test"},
		},
	} {
		t.Run("runtime/S15 "+c.name, func(t *testing.T) {
			rec, p := record(t)
			req := Conversation("", nil)
			req.Messages[0].Parts = req.Messages[0].Parts[:3]
			c.change(req)
			body, receipts, _ := rec.Sent(t, p, req)
			if !strings.Contains(receipts, "attachments omittedUnsupported") {
				t.Errorf("receipts %q", receipts)
			}
			for _, text := range c.want {
				if !strings.Contains(body, text) {
					t.Errorf("the model did not get %s:\n%s", text, body)
				}
			}
			for _, text := range c.unwanted {
				if strings.Contains(body, text) {
					t.Errorf("the model got %s:\n%s", text, body)
				}
			}
		})
	}
}
