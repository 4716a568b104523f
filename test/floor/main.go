// Command floor is the simplest durable agent daemon, the yardstick for lashd. It
// speaks newline JSON-RPC on stdio, streams from one chat model, has two tools
// and commits twice a turn: the input before the model is called, and the outcome
// before the turn is reported. It does one thing at a time, leaves out everything
// but durability, and ends on the first failure. The environment configures it:
//
//	FLOOR_BASE  base URL of the model, "/v1" included
//	FLOOR_DB    database file, created when missing
//	FLOOR_SYNC  SQLite synchronous mode; default FULL
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(log.Lshortfile)
	ctx := context.Background()
	d := &daemon{
		store:    open(ctx, os.Getenv("FLOOR_DB"), cmp.Or(os.Getenv("FLOOR_SYNC"), "FULL")),
		out:      bufio.NewWriterSize(os.Stdout, 64<<10),
		model:    os.Getenv("FLOOR_BASE") + "/chat/completions",
		sessions: map[string]*session{},
	}
	defer d.store.close()
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		d.handle(ctx, line)
		must(0, d.out.Flush())
	}
}

// must ends the process on a failure. The floor has no error handling: a failed run must not produce
// figures.
func must[T any](v T, err error) T {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
	return v
}

// quote returns s as a JSON string.
func quote(s string) []byte { return must(json.Marshal(s)) }

// daemon handles one request at a time, so it needs no locks. out is flushed after
// each request, and after deltas that no other line follows at once.
type daemon struct {
	store    *store
	out      *bufio.Writer
	model    string // URL for chat requests
	sessions map[string]*session
}

// session is a conversation in memory. Its history is kept as JSON text, ready for the next request:
// the messages, each followed by a comma.
type session struct {
	id      int64
	next    int // number of the next item
	history []byte
}

func (s *session) add(item []byte) { s.history = append(append(s.history, item...), ',') }

func (s *session) messages() []byte { return bytes.TrimSuffix(s.history, []byte(",")) }

// handle answers one request. turn/start is answered before the turn runs.
func (d *daemon) handle(ctx context.Context, line []byte) {
	var q struct {
		ID     json.RawMessage
		Method string
		Params struct {
			SessionID, Text string
			Input           []struct{ Text string }
		}
	}
	must(0, json.Unmarshal(line, &q))
	sid := q.Params.SessionID
	respond := func(result string, args ...any) {
		fmt.Fprintf(d.out, `{"jsonrpc":"2.0","id":%s,"result":`+result+"}\n", append([]any{q.ID}, args...)...)
	}
	switch q.Method {
	case "initialize":
		respond(`{"serverInfo":{"name":"floor"}}`)
	case "session/new":
		s := d.store.add(ctx)
		sid = strconv.FormatInt(s.id, 10)
		d.sessions[sid] = s
		respond(`{"sessionId":%q}`, sid)
	case "session/resume":
		d.sessions[sid] = d.store.load(ctx, sid)
		respond(`{"items":[%s]}`, d.sessions[sid].messages())
	case "turn/start":
		var text strings.Builder
		text.WriteString(q.Params.Text)
		for _, part := range q.Params.Input {
			text.WriteString(part.Text)
		}
		respond("{}")
		d.turn(ctx, sid, text.String())
	default:
		log.Fatalf("no method %q", q.Method)
	}
}

// turn runs a turn: it stores the input, calls the model until it calls no more
// tools, and stores the outcome.
func (d *daemon) turn(ctx context.Context, sid, text string) {
	s := d.sessions[sid]
	if s == nil {
		log.Fatalf("no session %q", sid)
	}
	input := fmt.Appendf(nil, `{"role":"user","content":%s}`, quote(text))
	d.store.save(ctx, s, input)
	s.add(input)
	var outcome [][]byte
	for more := true; more; {
		items := d.ask(ctx, sid, s)
		for _, it := range items {
			s.add(it)
		}
		outcome = append(outcome, items...)
		more = len(items) > 1 // tools were called
	}
	d.store.save(ctx, s, outcome...)
	fmt.Fprintf(d.out, `{"jsonrpc":"2.0","method":"turn/completed","params":{"sessionId":%q}}`+"\n", sid)
}

// call is a tool call in the form of the model API, which is also its form in the
// history.
type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
		Args string `json:"arguments"`
	} `json:"function"`
}

// chunk is the part of a streamed chunk that floor reads.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			ToolCalls []struct {
				Index int `json:"index"`
				call
			} `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
}

const requestHead = `{"model":"fake","stream":true,"tools":[{"type":"function","function":{"name":"shell"}},{"type":"function","function":{"name":"read"}}],"messages":[`

// ask streams one answer to the client. It returns the answer's message and those of the tools it
// called, as JSON.
func (d *daemon) ask(ctx context.Context, sid string, s *session) [][]byte {
	body := bytes.Join([][]byte{[]byte(requestHead), s.messages(), []byte("]}")}, nil)
	req := must(http.NewRequestWithContext(ctx, http.MethodPost, d.model, bytes.NewReader(body)))
	resp := must(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		log.Fatalf("model: %s", resp.Status)
	}
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	var text []byte
	var calls []call
	for {
		line := must(in.ReadSlice('\n')) // a stream that ends without [DONE] is a failure
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		var c chunk
		must(0, json.Unmarshal(data, &c))
		if len(c.Choices) == 0 {
			continue
		}
		for _, p := range c.Choices[0].Delta.ToolCalls {
			if p.Index == len(calls) {
				calls = append(calls, p.call) // the first piece has id and name
			} else {
				calls[p.Index].Function.Args += p.Function.Args
			}
		}
		if t := c.Choices[0].Delta.Content; t != "" {
			text = append(text, t...)
			fmt.Fprintf(d.out, `{"jsonrpc":"2.0","method":"item/delta","params":{"sessionId":%q,"text":%s}}`+"\n", sid, quote(t))
			if !lineWaits(in) {
				must(0, d.out.Flush())
			}
		}
	}
	io.Copy(io.Discard, in) // reads to the end, so that the connection is reused
	if len(calls) == 0 {
		return [][]byte{fmt.Appendf(nil, `{"role":"assistant","content":%s}`, quote(string(text)))}
	}
	items := [][]byte{fmt.Appendf(nil, `{"role":"assistant","content":%s,"tool_calls":%s}`, quote(string(text)), must(json.Marshal(calls)))}
	for _, c := range calls {
		items = append(items, fmt.Appendf(nil, `{"role":"tool","tool_call_id":%s,"content":%s}`, quote(c.ID), quote(c.run(ctx))))
	}
	return items
}

// lineWaits reports whether another line of content has already arrived, so that a delta can share its
// write with the next one. It first consumes the blank line that ends the event just read: counting it
// would delay a single delta.
func lineWaits(in *bufio.Reader) bool {
	waiting, _ := in.Peek(in.Buffered())
	if len(waiting) > 0 && waiting[0] == '\n' {
		in.Discard(1)
		waiting = waiting[1:]
	}
	return bytes.IndexByte(waiting, '\n') >= 0
}

// run executes the call. Failures become the tool's answer.
func (c call) run(ctx context.Context) string {
	var args struct{ Command, Path string }
	var out []byte
	err := json.Unmarshal([]byte(c.Function.Args), &args)
	if err == nil && c.Function.Name == "shell" {
		out, err = exec.CommandContext(ctx, "sh", "-c", args.Command).CombinedOutput()
	} else if err == nil {
		out, err = os.ReadFile(args.Path)
	}
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}
