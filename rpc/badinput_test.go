package rpc_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// badCase is invalid input and its expected effects.
type badCase struct {
	in   string   // as sent; $words stand for what the fixture made
	want []string // the answers, in the words of told; none if nothing is answered
	has  string   // a part of the last answer
}

// told describes a response: its id and either ok, or code, kind, retry, outcome, pointer and the name that was
// probably meant.
func told(t testing.TB, frame []byte) string {
	t.Helper()
	if frame[0] == '[' {
		var entries []json.RawMessage
		if err := json.Unmarshal(frame, &entries); err != nil {
			t.Fatalf("batch %s: %v", frame, err)
		}
		var words []string
		for _, e := range entries {
			words = append(words, told(t, e))
		}
		return "[" + strings.Join(words, "; ") + "]"
	}
	var a struct {
		JSONRPC string `json:"jsonrpc"`
		answer
	}
	if err := json.Unmarshal(frame, &a); err != nil || a.JSONRPC != "2.0" || (a.Result == nil) == (a.Error == nil) {
		t.Fatalf("answer %.300s: %v", frame, err)
	}
	if a.Error == nil {
		return string(a.ID) + " ok"
	}
	d := a.Error.Data
	words := fmt.Sprintf("%s %d %s %s %s %s", a.ID, a.Error.Code, d.Kind, d.Retry, d.Outcome, d.Pointer)
	if near := nearest.FindStringSubmatch(a.Error.Message); near != nil {
		words += " ~" + near[1]
	}
	return strings.TrimRight(words, " ")
}

var nearest = regexp.MustCompile(`did you mean "?([^"?]+)`)

// wire is a connection that speaks either framing.
type wire struct {
	net.Conn
	in      *bufio.Reader
	headers bool
	pings   int
	events  []protocol.Event // that came before an answer
}

// frame is the next answer, or batch of answers.
func (w *wire) frame(t testing.TB) []byte {
	t.Helper()
	for {
		body, err := w.next()
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		var a answer
		if json.Unmarshal(body, &a); a.Method == "" {
			return body
		}
		w.events = append(w.events, a.Params)
	}
}

func (w *wire) next() ([]byte, error) {
	line, err := w.in.ReadBytes('\n')
	length, framed := strings.CutPrefix(string(line), "Content-Length: ")
	if err != nil || !framed {
		return line, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(length))
	if err != nil {
		return nil, err
	}
	body := make([]byte, len("\r\n")+n)
	_, err = io.ReadFull(w.in, body)
	return body[len("\r\n"):], err
}

// send writes bytes as they are; how a peer ends a connection shows when it is read.
func (w *wire) send(data string) {
	w.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(w, data)
}

// usable fails the test unless the next thing to be answered is a ping.
func (w *wire) usable(t testing.TB) {
	t.Helper()
	w.pings++
	ping := fmt.Sprintf(`{"jsonrpc":"2.0","id":"ping %d","method":"ping"}`, w.pings)
	if w.headers {
		w.send(cl(ping))
	} else {
		w.send(ping + "\n")
	}
	if got, want := told(t, w.frame(t)), fmt.Sprintf(`"ping %d" ok`, w.pings); got != want {
		t.Fatalf("a ping was answered %s", got)
	}
}

func cl(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// check sends a case and compares the responses, the state of the connection and the database.
func (f *fixture) check(t *testing.T, w *wire, c badCase) {
	t.Helper()
	f.cases++
	w.send(f.words.Replace(c.in))
	var got []string
	var last []byte
	for range c.want {
		last = w.frame(t)
		got = append(got, told(t, last))
	}
	if !slices.Equal(got, c.want) || !strings.Contains(string(last), c.has) {
		t.Errorf("%.300s\n got %q\nwant %q %s\nin %.500s", c.in, got, c.want, c.has, last)
	}
	w.usable(t)
	f.unchanged(t)
}
