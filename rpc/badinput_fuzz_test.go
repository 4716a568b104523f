package rpc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// request is a message as a lenient reader sees it.
type request struct{ jsonrpc, id, method json.RawMessage }

// asRequest reports whether a message is a request, which needs a response however wrong it is.
func asRequest(data []byte) (request, bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil {
		return request{}, false
	}
	r := request{m["jsonrpc"], m["id"], m["method"]}
	scalar := len(r.id) > 0 && (r.id[0] == '"' || r.id[0] == '-' || '0' <= r.id[0] && r.id[0] <= '9')
	return r, scalar && string(r.jsonrpc) == `"2.0"` && len(r.method) > 0 && r.method[0] == '"'
}

// FuzzServed sends anything as one message to a daemon, and then a ping. A request is answered once, other things at
// most once, each answer is JSON-RPC with a typed error, nothing is an internal error, and the ping is answered.
func FuzzServed(f *testing.F) {
	daemon := newFixture(f)
	seed := func(in string) { f.Add([]byte(daemon.words.Replace(in))) }
	for _, c := range slices.Concat(wrongSession, wrong, states) {
		if len(c.params) < 1000 {
			seed(call(c.method, c.params))
		}
	}
	for _, c := range slices.Concat(documents, envelopes) {
		if len(c.in) < 1000 {
			seed(c.in)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(in, []byte("exit")) {
			return // exit is not answered, and nothing after it
		}
		w := daemon.dialSocket(t)
		w.headers = true
		defer w.Close()
		w.send(cl(string(in)) + cl(`{"jsonrpc":"2.0","id":"ping 0","method":"ping"}`))
		r, must := asRequest(in)
		answers := w.answers(t, r, must)
		if len(answers) > 1 || must && len(answers) == 0 {
			t.Fatalf("%q was answered %d times", in, len(answers))
		}
		for _, a := range answers {
			checkAnswer(t, in, a)
		}
	})
}

// answers reads until the ping is answered, and the request too. One that waits for something is cancelled.
func (w *wire) answers(t *testing.T, r request, must bool) [][]byte {
	t.Helper()
	var all [][]byte
	for {
		frame := w.frame(t)
		if told(t, frame) == `"ping 0" ok` {
			break
		}
		all = append(all, frame)
	}
	if must && len(all) == 0 {
		w.send(cl(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%s}}`, r.id)))
		all = append(all, w.frame(t))
	}
	w.usable(t)
	return all
}

func checkAnswer(t *testing.T, in, frame []byte) {
	t.Helper()
	var one answer
	if frame[0] == '[' || json.Unmarshal(frame, &one) != nil || one.Error == nil {
		return // told has looked at it
	}
	if e := one.Error; e.Message == "" || e.Data.Kind == "" || e.Data.Retry == "" || e.Data.Outcome == "" || e.Code == -32603 {
		t.Errorf("%q was answered %s", in, frame)
	}
}
