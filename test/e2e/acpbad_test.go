package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// rawACP exchanges single lines with lashd acp.
type rawACP struct {
	t      *testing.T
	frames *frames
	cmd    *exec.Cmd
	out    *bufio.Reader
	stdin  io.WriteCloser
}

func (h *home) rawACP() *rawACP {
	h.t.Helper()
	cmd := h.command("acp")
	cmd.Stderr = h.t.Output() // lashd acp logs the editor's mistakes
	in, out := h.piped(cmd)
	h.t.Cleanup(func() {
		if cmd.ProcessState != nil {
			return // the test has waited itself
		}
		in.Close()
		go io.Copy(io.Discard, out) // let lashd acp finish writing
		if err := cmd.Wait(); err != nil {
			h.t.Errorf("lashd acp ends with %v", err)
		}
	})
	return &rawACP{h.t, newFrames(h.t), cmd, bufio.NewReaderSize(out, 1<<20), in}
}

// write sends lines.
func (r *rawACP) write(lines string) {
	r.t.Helper()
	for line := range strings.Lines(lines) {
		r.frames.sent([]byte(line))
	}
	if _, err := r.stdin.Write([]byte(lines + "\n")); err != nil {
		r.t.Fatal(err)
	}
}

// answer sends lines and returns the next response.
func (r *rawACP) answer(lines string) acpFrame {
	r.t.Helper()
	r.write(lines)
	return r.next()
}

// open initializes the connection and creates a session.
func (r *rawACP) open(w *world) string {
	r.t.Helper()
	r.answer(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	return r.session(w)
}

// session creates a session.
func (r *rawACP) session(w *world) string {
	r.t.Helper()
	m := r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, w.work))
	var made struct{ SessionID string }
	if err := json.Unmarshal(m.Result, &made); err != nil || made.SessionID == "" {
		r.t.Fatalf("session/new: %s %v", m.Error, err)
	}
	return made.SessionID
}

// next reads up to the next response.
func (r *rawACP) next() acpFrame {
	r.t.Helper()
	for {
		if m := r.read(); m.Method == "" {
			return m
		}
	}
}

// read reads one frame.
func (r *rawACP) read() (m acpFrame) {
	r.t.Helper()
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		r.t.Fatal("lashd acp exited:", err)
	}
	r.frames.received(line)
	if err := json.Unmarshal(line, &m); err != nil {
		r.t.Fatal(err)
	}
	return m
}

// prompts is a session/prompt request.
func prompts(id int, session, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, id, session, text)
}

// problem is the id, code, kind and pointer of an error response.
func (m *acpFrame) problem() string {
	var e struct {
		Code int                `json:"code"`
		Data protocol.ErrorData `json:"data"`
	}
	json.Unmarshal(m.Error, &e)
	return strings.TrimSpace(fmt.Sprintf("%s %d %s %s", m.ID, e.Code, e.Data.Kind, e.Data.Pointer))
}

// goWords are terms in an error that only a Go programmer would understand.
var goWords = regexp.MustCompile(`json:|cannot unmarshal|\bacp\.|\bprotocol\.|\bu?int(8|16|32|64)\b|float64|\[\]byte|struct \{|variant|payload`)

// promised describes how an error breaks the documented format: missing data, or terms of Go in its
// message.
func (m *acpFrame) promised() string {
	var e struct {
		Message string             `json:"message"`
		Data    protocol.ErrorData `json:"data"`
	}
	json.Unmarshal(m.Error, &e)
	switch {
	case m.Error == nil:
		return ""
	case e.Message == "" || e.Data.Kind == "" || e.Data.Retry == "" || e.Data.Outcome == "":
		return "lacks some of its data"
	case goWords.MatchString(e.Message):
		return "is in words of Go"
	}
	return ""
}

// badACP is one or more invalid lines, and the expected response to the last: id, code, kind and
// pointer. In a line, SES stands for a session, WORK for its workspace and REQ for the beginning of
// every request. An empty want means that no response is expected.
type badACP struct{ name, line, want string }

// anytime are lines that are invalid on every connection.
var anytime = []badACP{
	{"half a value", `{"jsonrpc":`, "null -32700 parseError"},
	{"no JSON", `hello`, "null -32700 parseError"},
	{"another framing", "Content-Length: 80", "null -32700 parseError"},
	{"an HTTP request", "GET / HTTP/1.1", "null -32700 parseError"},
	{"a byte order mark", "\ufeff{REQ}", "null -32700 parseError"},
	{"invalid UTF-8", "{REQ,\"method\":\"\xff\"}", "null -32700 parseError"},
	{"a NUL", "{REQ,\"method\":\"\x00\"}", "null -32700 parseError"},
	{"two values on a line", `{REQ,"method":"a"}{REQ,"method":"b"}`, "null -32700 parseError"},
	{"a name twice", `{REQ,"id":2,"method":"initialize"}`, "null -32700 parseError"},
	{"too deep", `{REQ,"method":"x","params":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, "null -32700 parseError"},
	{"too long", `{REQ,"method":"x","params":{"x":"` + strings.Repeat("x", 10<<20) + `"}}`, "null -32600 invalidRequest"},
	{"a batch", `[{REQ,"method":"initialize"}]`, "null -32600 invalidRequest"},
	{"an empty batch", `[]`, "null -32600 invalidRequest"},
	{"a number", `7`, "null -32600 invalidRequest"},
	{"null", `null`, "null -32600 invalidRequest"},
	{"no version", `{"id":1,"method":"initialize"}`, "null -32600 invalidRequest"},
	{"another version", `{"jsonrpc":"1.0","id":1,"method":"initialize"}`, "null -32600 invalidRequest"},
	{"a name in other letters", `{"jsonrpc":"2.0","ID":1,"method":"initialize"}`, "null -32600 invalidRequest"},
	{"an object for an id", `{"jsonrpc":"2.0","id":{},"method":"initialize"}`, "null -32600 invalidRequest"},
	{"null for an id", `{"jsonrpc":"2.0","id":null,"method":"initialize"}`, "null -32600 invalidRequest"},
	{"true for an id", `{"jsonrpc":"2.0","id":true,"method":"initialize"}`, "null -32600 invalidRequest"},
	{"a number for a method", `{REQ,"method":7}`, "null -32600 invalidRequest"},
	{"an empty method", `{REQ,"method":""}`, "1 -32600 invalidRequest"},
	{"neither a method nor a result", `{"jsonrpc":"2.0","id":7}`, "7 -32600 invalidRequest"},
	{"a malformed error response", `{"jsonrpc":"2.0","id":7,"error":3}`, "null -32600 invalidRequest"},
	{"a response to no request", `{"jsonrpc":"2.0","id":7,"result":{}}`, ""},
	{"a response without an id", `{"jsonrpc":"2.0","result":{}}`, ""},
	{"a blank line", " \r", ""},
	{"no such method", `{REQ,"method":"session/dance"}`, "1 -32601 methodNotFound"},
	{"no such notification", `{"jsonrpc":"2.0","method":"session/dance"}`, ""},
	{"nothing to cancel", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`, ""},
	{"a cancellation without params", `{"jsonrpc":"2.0","method":"$/cancel_request"}`, ""},
	{"a cancellation with an id", `{REQ,"method":"$/cancel_request","params":{"requestId":99}}`, "1 -32601 methodNotFound"},
	{"a request without an id", `{"jsonrpc":"2.0","method":"session/new","params":{"cwd":"WORK","mcpServers":[]}}`, ""},
	{"a text for params", `{REQ,"method":"initialize","params":"x"}`, "1 -32602 invalidParams"},
	{"a list for params", `{REQ,"method":"initialize","params":[7]}`, "1 -32602 invalidParams"},
}

// early are requests that are invalid before initialize.
var early = []badACP{
	{"too early", `{REQ,"method":"session/list","params":{}}`, "1 -32600 notInitialized"},
	{"a session too early", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":[]}}`, "1 -32600 notInitialized"},
	{"a text for a version", `{REQ,"method":"initialize","params":{"protocolVersion":"1"}}`, "1 -32602 invalidParams /protocolVersion"},
	{"a text for a capability", `{REQ,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":"yes"}}}`, "1 -32602 invalidParams /clientCapabilities/terminal"},
}

// late are requests that are invalid after initialize.
var late = []badACP{
	{"outside/18 null for no params", `{REQ,"method":"session/list","params":null}`, "1 0"},
	{"outside/18 an empty list for no params", `{REQ,"method":"session/list","params":[]}`, "1 0"},
	{"outside/18 null for params that are needed", `{REQ,"method":"session/new","params":null}`, "1 -32602 invalidParams /cwd"},
	{"outside/18 an empty list for params that are needed", `{REQ,"method":"session/new","params":[]}`, "1 -32602 invalidParams /cwd"},
	{"twice", `{REQ,"method":"initialize","params":{"protocolVersion":1}}`, "1 -32600 invalidRequest"},
	{"no authentication", `{REQ,"method":"authenticate","params":{"methodId":"x"}}`, "1 -32602 invalidParams /methodId"},
	{"authenticate without a method", `{REQ,"method":"authenticate"}`, "1 -32602 invalidParams /methodId"},
	{"session/new without params", `{REQ,"method":"session/new"}`, "1 -32602 invalidParams /cwd"},
	{"no directory", `{REQ,"method":"session/new","params":{"mcpServers":[]}}`, "1 -32602 invalidParams /cwd"},
	{"a relative directory", `{REQ,"method":"session/new","params":{"cwd":"here","mcpServers":[]}}`, "1 -32602 invalidParams /cwd"},
	{"a missing directory", `{REQ,"method":"session/new","params":{"cwd":"WORK/none","mcpServers":[]}}`, "1 -32602 invalidParams /cwd"},
	{"a file for a directory", `{REQ,"method":"session/new","params":{"cwd":"WORK/file","mcpServers":[]}}`, "1 -32602 invalidParams /cwd"},
	{"a number for a directory", `{REQ,"method":"session/new","params":{"cwd":7,"mcpServers":[]}}`, "1 -32602 invalidParams /cwd"},
	{"no servers", `{REQ,"method":"session/new","params":{"cwd":"WORK"}}`, "1 -32602 invalidParams /mcpServers"},
	{"a text for servers", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":"x"}}`, "1 -32602 invalidParams /mcpServers"},
	{"a server without a transport", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":[{"name":"x"}]}}`, "1 -32602 invalidParams /mcpServers/0"},
	{"a server without an address", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":[{"type":"http","name":"x","url":"","headers":[]}]}}`, "1 -32602 invalidParams /mcpServers/0"},
	{"a stdio server without a command", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":[{"type":"stdio","name":"x","command":"","args":[],"env":[]}]}}`, "1 -32602 invalidParams /mcpServers/0"},
	{"no directory to fork", `{REQ,"method":"session/fork","params":{"sessionId":"ses_x"}}`, "1 -32602 invalidParams /cwd"},
	{"no session to fork", `{REQ,"method":"session/fork","params":{"cwd":"WORK"}}`, "1 -32602 invalidParams /sessionId"},
	{"an unknown session to fork", `{REQ,"method":"session/fork","params":{"sessionId":"ses_x","cwd":"WORK"}}`, "1 -32002 sessionNotFound"},
	{"a server without a name", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":[{"name":"","command":"a","args":[],"env":[]}]}}`, "1 -32602 invalidParams /mcpServers/0/name"},
	{"sse", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":[{"type":"sse","name":"x","url":"http://x","headers":[]}]}}`, "1 -32602 invalidParams /mcpServers/0"},
	{"a server twice", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":[{"name":"x y","command":"a","args":[],"env":[]},{"name":"x_y","command":"b","args":[],"env":[]}]}}`, "1 -32602 invalidParams /mcpServers/1/name"},
	{"more directories", `{REQ,"method":"session/new","params":{"cwd":"WORK","mcpServers":[],"additionalDirectories":["/"]}}`, "1 -32602 invalidParams /additionalDirectories"},
	{"an unknown session to load", `{REQ,"method":"session/load","params":{"sessionId":"ses_x","cwd":"WORK","mcpServers":[]}}`, "1 -32002 sessionNotFound"},
	{"an unknown session to resume", `{REQ,"method":"session/resume","params":{"sessionId":"ses_x","cwd":"WORK"}}`, "1 -32002 sessionNotFound"},
	{"no session to load", `{REQ,"method":"session/load","params":{"cwd":"WORK","mcpServers":[]}}`, "1 -32602 invalidParams /sessionId"},
	{"an invalid cursor", `{REQ,"method":"session/list","params":{"cursor":"x"}}`, "1 -32602 invalidParams /cursor"},
}

// within are requests that are invalid in an open session.
var within = []badACP{
	{"another directory to load", `{REQ,"method":"session/load","params":{"sessionId":"SES","cwd":"/","mcpServers":[]}}`, "1 -32602 invalidParams /cwd"},
	{"an unknown session", `{REQ,"method":"session/prompt","params":{"sessionId":"ses_x","prompt":[{"type":"text","text":"x"}]}}`, "1 -32002 sessionNotFound"},
	{"no session", `{REQ,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"x"}]}}`, "1 -32602 invalidParams /sessionId"},
	{"a number for a session", `{REQ,"method":"session/prompt","params":{"sessionId":7,"prompt":[{"type":"text","text":"x"}]}}`, "1 -32602 invalidParams /sessionId"},
	{"no prompt", `{REQ,"method":"session/prompt","params":{"sessionId":"SES"}}`, "1 -32602 invalidParams /prompt"},
	{"an empty prompt", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[]}}`, "1 -32602 invalidParams /prompt"},
	{"a prompt with an empty text", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"text","text":""}]}}`, "1 -32602 invalidParams /prompt"},
	{"a text for a prompt", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":"x"}}`, "1 -32602 invalidParams /prompt"},
	{"an unknown content block", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"smell"}]}}`, "1 -32602 invalidParams /prompt/0"},
	{"a number for a text", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"text","text":7}]}}`, "1 -32602 invalidParams"},
	{"audio", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"audio","data":"","mimeType":"audio/wav"}]}}`, "1 -32602 invalidParams /prompt/0"},
	{"an image that is not base64", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"image","data":"?","mimeType":"image/png"}]}}`, "1 -32602 invalidParams /prompt/0/data"},
	{"an image without a type", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"image","data":"aGVsbG8=","mimeType":""}]}}`, "1 -32602 invalidParams /prompt/0/mimeType"},
	{"an image with a text type", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"image","data":"aGVsbG8=","mimeType":"text/plain"}]}}`, "1 -32602 invalidParams /prompt/0/mimeType"},
	{"an image without data", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"image","data":"","mimeType":"image/png"}]}}`, "1 -32602 invalidParams /prompt/0/data"},
	{"an empty resource", `{REQ,"method":"session/prompt","params":{"sessionId":"SES","prompt":[{"type":"resource","resource":{}}]}}`, "1 -32602 invalidParams /prompt/0/resource/uri"},
	{"an unknown mode", `{REQ,"method":"session/set_mode","params":{"sessionId":"SES","modeId":"dance"}}`, "1 -32602 invalidParams /modeId"},
	{"a mode of an unknown session", `{REQ,"method":"session/set_mode","params":{"sessionId":"ses_x","modeId":"plan"}}`, "1 -32002 sessionNotFound"},
	{"an unknown model", `{REQ,"method":"session/set_model","params":{"sessionId":"SES","modelId":"dance"}}`, "1 -32002 modelNotFound"},
	{"an unknown option", `{REQ,"method":"session/set_config_option","params":{"sessionId":"SES","configId":"dance","value":"x"}}`, "1 -32602 invalidParams /configId"},
	{"an unknown value", `{REQ,"method":"session/set_config_option","params":{"sessionId":"SES","configId":"mode","value":"x"}}`, "1 -32602 invalidParams /value"},
	{"an unknown sandbox mode", `{REQ,"method":"session/set_config_option","params":{"sessionId":"SES","configId":"sandbox","value":"none"}}`, "1 -32602 invalidParams /value"},
	{"an effort of a model without efforts", `{REQ,"method":"session/set_config_option","params":{"sessionId":"SES","configId":"effort","value":"low"}}`, "1 -32602 invalidParams /effort"},
	{"an unknown session to close", `{REQ,"method":"session/close","params":{"sessionId":"ses_x"}}`, "1 -32002 sessionNotFound"},
	{"a cancellation of an unknown session", `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"ses_x"}}`, ""},
	{"a cancellation of no session", `{"jsonrpc":"2.0","method":"session/cancel","params":7}`, ""},
	{"a cancellation without a prompt", `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"SES"}}`, ""},
}

// TestACPBadInput sends invalid lines. Each gets the right error, and the connection keeps working.
func TestACPBadInput(t *testing.T) {
	w := newWorld(t, "allow", step(says("Fine.")))
	w.write(w.work+"/file", "")
	defer w.shutdown()
	r := w.rawACP()
	id := ""
	check := func(cases []badACP, after string) {
		for _, c := range cases {
			line := strings.NewReplacer("REQ", `"jsonrpc":"2.0","id":1`, "WORK", w.work, "SES", id).Replace(c.line)
			if c.want != "" {
				m := r.answer(line)
				if problem := m.promised(); problem != "" {
					t.Errorf("outside/21 %s: the error %s: %.300s", c.name, problem, m.Error)
				}
				if m.problem() != c.want {
					t.Errorf("issue/6-3 %s: %s, want %s: %.200s", c.name, m.problem(), c.want, m.Error)
				}
			} else {
				r.write(line)
			}
			if m := r.answer(`{"jsonrpc":"2.0","id":"after","method":"session/list","params":{}}`); m.problem() != after || string(m.ID) != `"after"` {
				t.Errorf("issue/6-3 after %s, a valid request gets %s %s %s", c.name, m.ID, m.Result, m.Error)
			}
		}
	}
	check(anytime, `"after" -32600 notInitialized`)
	check(early, `"after" -32600 notInitialized`)
	if m := r.answer(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":99}}`); m.Error != nil || string(m.ID) != `"a"` {
		t.Fatalf("initialize: %s", m.Error)
	}
	const fine = `"after" 0`
	check(anytime, fine)
	check(late, fine)
	if list := r.answer(`{"jsonrpc":"2.0","id":1,"method":"session/list"}`); string(list.Result) != `{"sessions":[]}` {
		t.Errorf("issue/6-3 rejected requests left %s", list.Result)
	}
	id = r.session(w)
	check(within, fine)
	if m := r.answer(prompts(1, id, "x")); string(m.Result) != `{"stopReason":"end_turn"}` {
		t.Errorf("issue/6-3 after all that, a prompt ends with %s %s", m.Result, m.Error)
	}
	w.cancels(r, id)
	w.crowds(r, id)
	in := func(method string) acpFrame {
		return r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/%s","params":{"sessionId":%q,"x":0}}`, method, id))
	}
	for _, c := range []struct{ method, want string }{{"close", ""}, {"close", "1 -32002 sessionNotFound"}, {"delete", ""}, {"delete", ""}, {"prompt", "1 -32602 invalidParams /prompt"}} {
		if m := in(c.method); m.Error == nil && c.want != "" || m.Error != nil && m.problem() != c.want {
			t.Errorf("issue/6-3 session/%s: %s %s, want %q", c.method, m.Result, m.Error, c.want)
		}
	}
}

// cancels sends a prompt and its cancellation in one write.
func (w *world) cancels(r *rawACP, id string) {
	begun := time.Now()
	r.write(prompts(1, id, "[[fake deltas=100000 us=20000]]") + "\n" + fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
	if m := r.next(); string(m.Result) != `{"stopReason":"cancelled"}` || time.Since(begun) > patience {
		w.t.Errorf("issue/6-3 a prompt cancelled at once ends after %s with %s %s", time.Since(begun), m.Result, m.Error)
	}
}

// crowds sends requests while a prompt is running: one with the prompt's id, session/load for its
// session, and more than a connection may have.
func (w *world) crowds(r *rawACP, id string) {
	asked := len(w.model.Requests())
	r.write(prompts(1, id, "[[fake deltas=100000 us=20000]]"))
	w.asked(asked + 1)
	load := fmt.Sprintf(`"method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`, id, w.work)
	for _, c := range []badACP{
		{"an id that is in use", prompts(1, id, "x"), "1 -32600 invalidRequest"},
		{"a session that has a prompt", `{"jsonrpc":"2.0","id":2,` + load, "2 -32600 invalidRequest"},
	} {
		if m := r.answer(c.line); m.problem() != c.want {
			w.t.Errorf("issue/6-3 %s: %s, want %s: %s", c.name, m.problem(), c.want, m.Error)
		}
	}
	for i := range 63 {
		r.write(prompts(100+i, id, "more"))
	}
	if m := r.answer(`{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`); m.problem() != "2 -32001 overloaded" {
		w.t.Errorf("issue/6-3 one request too many: %s: %s", m.problem(), m.Error)
	}
	r.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
	for range 64 {
		if m := r.next(); string(m.Result) != `{"stopReason":"cancelled"}` {
			w.t.Errorf("issue/6-3 prompt %s of many ends with %s %s", m.ID, m.Result, m.Error)
		}
	}
}
