package providertest

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// recorded has one archive for each API. The name of a file in it says which case it is.
//
//go:embed testdata/*.txtar
var recorded embed.FS

// Answers returns the recorded answers of an API, such as "anthropic", by name and as raw HTTP. Google ends lines with CRLF.
// It fails the test if there are none for the API.
func Answers(t testing.TB, api string) map[string][]byte {
	t.Helper()
	data, err := recorded.ReadFile("testdata/" + api + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string][]byte{}
	for _, f := range txtar.Parse(data).Files {
		answer := f.Data
		if f.Name == "frame" { // breaks off in the middle of a line
			answer = bytes.TrimSuffix(answer, []byte("\n"))
		}
		if api == "gemini" {
			answer = bytes.ReplaceAll(answer, []byte("\n"), []byte("\r\n"))
		}
		answers[f.Name] = answer
	}
	return answers
}

// Body returns the body of raw HTTP.
// It fails the test if the answer is not HTTP or its body breaks off.
func Body(t testing.TB, raw []byte) []byte {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Canned is a transport whose answers come from memory, with status 200.
// The bytes are the body. It is safe for concurrent use.
type Canned []byte

// RoundTrip implements http.RoundTripper.
func (c Canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(c)), Request: req}, nil
}

// FuzzStream feeds an adapter with answers, beginning with the recorded ones of its API. For each answer, the reply ends once, with an
// error that says so or with Stop, is within the limits, and its calls have arguments that are JSON.
// open returns the adapter under test with a client that reads the answer from memory; nothing is sent.
func FuzzStream(f *testing.F, api string, open func(*http.Client) provider.Provider) {
	for _, raw := range Answers(f, api) {
		f.Add(Body(f, raw))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		p := open(&http.Client{Transport: Canned(answer)})
		ends, size, calls := 0, 0, 0 // of the reply: errors or stops, bytes, tool calls
		for chunk, err := range p.Stream(t.Context(), Request()) {
			if ends > 0 { // nothing may follow an error or Stop
				t.Errorf("after the end came %+v, %v", chunk, err)
			}
			if _, ok := errors.AsType[*provider.Error](err); err != nil && !ok {
				t.Errorf("error %v, want a *provider.Error", err)
			}
			if err != nil || chunk.Stop != "" {
				ends++
			}
			size += len(chunk.Text) + len(chunk.Reasoning) + len(chunk.Commentary) + len(chunk.Replay)
			if chunk.Part != nil && chunk.Part.Kind == protocol.PartToolCall { // other parts only carry replay state
				calls++
				if !json.Valid(chunk.Part.Call.Args) { // Reply.Call makes other arguments a JSON string
					t.Errorf("arguments %q are not JSON", chunk.Part.Call.Args)
				}
			}
		}
		if ends != 1 || size > provider.ReplyLimit || calls > provider.CallLimit {
			t.Errorf("%d ends, %d bytes, %d calls", ends, size, calls)
		}
	})
}
