package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// UnstableCreateElicitation fills in every form, for the SDK.
func (e *acpEditor) UnstableCreateElicitation(context.Context, sdk.UnstableCreateElicitationRequest) (sdk.UnstableCreateElicitationResponse, error) {
	r := sdk.NewUnstableCreateElicitationResponseAccept()
	r.Accept.Content = map[string]any{"colour": "green"}
	return r, nil
}

// TestACPServers has an editor bring MCP servers, whose tools the model calls, and which ask the person for more than a choice.
func TestACPServers(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.ElicitationFormCapabilities{}}})
	stdio := sdk.McpServer{Stdio: &sdk.McpServerStdio{
		Name: "my server", Command: goServer(t), Args: []string{}, Env: []sdk.EnvVariable{{Name: "GREETING", Value: "hello"}},
	}}
	e.open(w.work, stdio)
	e.says(fakemodel.ToolMarker("mcp__my_server__greeting", "{}"))
	if !strings.Contains(e.story(), `call completed "hello"`) {
		t.Errorf("issue/6-3 a tool of a server that the editor brings:\n%s", e.story())
	}
	e.says(fakemodel.ToolMarker("mcp__my_server__colour", "{}"))
	if !strings.Contains(e.story(), `call completed "accept green"`) {
		t.Errorf("issue/6-3 a question of such a server:\n%s", e.story())
	}
	w.killWhoServes()
	e.says("[[fake]]")
	e.says(fakemodel.ToolMarker("mcp__my_server__greeting", "{}"))
	if strings.Count(e.story(), `call completed "hello"`) != 2 {
		t.Errorf("issue/6-3 after the daemon was killed:\n%s", e.story())
	}
	web := sdk.McpServer{Http: &sdk.McpServerHttpInline{Name: "web", Url: overHTTP(t, npmServer(t, "everything")), Headers: []sdk.HttpHeader{}, Type: "http"}}
	e.open(w.work, web)
	e.says(fakemodel.ToolMarker("mcp__web__echo", `{"message":"two"}`))
	if !strings.Contains(e.story(), `call completed "Echo: two"`) {
		t.Errorf("issue/6-3 a tool of a server over HTTP:\n%s", e.story())
	}
}

// TestACPSteers has a person say more while the model works, and while there is nothing that it could enter.
func TestACPSteers(t *testing.T) {
	w := newWorld(t, "allow",
		step(says("I wait."), shell("until test -e go; do sleep 0.02; done")), step(says("Both.")),
		step(says("Hm"), stalls), step(says("Next.")))
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	first := e.begins("one")
	e.until("the command runs", func() bool { return strings.Contains(e.storyLocked(), "execute") })
	second := e.begins("two")
	p := w.dial("")
	eventually(t, "the prompt waits to be taken in", func() error {
		if queue := ask[protocol.QueueListResult](p, "queue/list", protocol.QueueListParams{SessionID: protocol.SessionID(e.id)}).Data; len(queue) != 2 { // that of the running turn, and this one
			return fmt.Errorf("%d wait", len(queue))
		}
		return nil
	})
	w.write(w.work+"/go", "")
	for i, done := range []<-chan prompted{first, second} {
		if r := <-done; r.stop != sdk.StopReasonEndTurn || r.err != nil {
			t.Errorf("issue/6-3 prompt %d of one turn ends with %s %v", i+1, r.stop, r.err)
		}
	}
	if n := len(w.model.Requests()); n != 2 || strings.Contains(e.story(), "user:") || !e.shown("agent: Both.") {
		t.Errorf("issue/6-3 the model was called %d times, and the editor was shown:\n%s", n, e.story())
	}
	first = e.begins("three")
	e.until("the answer begins", func() bool { return strings.Contains(e.storyLocked(), "agent: Hm") })
	second = e.begins("four")
	eventually(t, "the prompt waits for the next turn", func() error {
		if queue := ask[protocol.QueueListResult](p, "queue/list", protocol.QueueListParams{SessionID: protocol.SessionID(e.id)}).Data; len(queue) != 2 { // that of the running turn, and this one
			return fmt.Errorf("%d wait", len(queue))
		}
		return nil
	})
	e.Cancel(e.context(), sdk.CancelNotification{SessionId: e.id})
	for i, done := range []<-chan prompted{first, second} {
		if r := <-done; r.stop != sdk.StopReasonCancelled || r.err != nil {
			t.Errorf("issue/6-3 prompt %d of those that were cancelled ends with %s %v", i+1, r.stop, r.err)
		}
	}
}

// TestACPStops has turns end in all the ways that the protocol has words for, and in one that it has not.
func TestACPStops(t *testing.T) {
	for name, c := range map[string]struct {
		step fakemodel.Step
		stop sdk.StopReason
		err  string
	}{
		"max_tokens": {fakemodel.Step{Parts: []fakemodel.Part{says("cut")}, Finish: "length"}, sdk.StopReasonMaxTokens, ""},
		"refusal":    {fakemodel.Step{Parts: []fakemodel.Part{says("no")}, Finish: "content_filter"}, sdk.StopReasonRefusal, ""},
		"an error":   {fakemodel.Step{Status: 401}, "", "-32020 providerError"},
	} {
		t.Run("issue/6-3 "+name, func(t *testing.T) {
			w := newWorld(t, "allow", c.step)
			defer w.shutdown()
			e := w.editor(sdk.ClientCapabilities{})
			e.open(w.work)
			r := <-e.begins("go")
			if r.stop != c.stop || (r.err == nil) != (c.err == "") || r.err != nil && acpRefusal(r.err) != c.err {
				t.Errorf("the turn ends with %q %v", r.stop, r.err)
			}
		})
	}
}

// rawACP speaks with lashd acp in lines.
type rawACP struct {
	t      *testing.T
	frames *frames
	out    *bufio.Reader
	in     interface{ Write([]byte) (int, error) }
}

func (h *home) rawACP() *rawACP {
	h.t.Helper()
	cmd := h.command("acp")
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			h.t.Errorf("lashd acp ends with %v", err)
		}
	})
	return &rawACP{h.t, newFrames(h.t), bufio.NewReaderSize(out, 1<<20), in}
}

// answer sends lines and reads the next answer.
func (r *rawACP) answer(lines string) acpFrame {
	r.t.Helper()
	for line := range strings.Lines(lines) {
		r.frames.sent([]byte(line))
	}
	if _, err := r.in.Write([]byte(lines + "\n")); err != nil {
		r.t.Fatal(err)
	}
	return r.next()
}

func (r *rawACP) next() acpFrame {
	r.t.Helper()
	for {
		line, err := r.out.ReadBytes('\n')
		if err != nil {
			r.t.Fatal("lashd acp has gone:", err)
		}
		r.frames.received(line)
		var m acpFrame
		if err := json.Unmarshal(line, &m); err != nil {
			r.t.Fatal(err)
		}
		if m.Method == "" {
			return m
		}
	}
}

// problem is an answer's id, code, kind and pointer.
func (m *acpFrame) problem() string {
	var e struct {
		Code int                `json:"code"`
		Data protocol.ErrorData `json:"data"`
	}
	json.Unmarshal(m.Error, &e)
	return strings.TrimSpace(fmt.Sprintf("%s %d %s %s", m.ID, e.Code, e.Data.Kind, e.Data.Pointer))
}

func TestACPBadInput(t *testing.T) {
	w := newWorld(t, "allow", step(says("Fine.")))
	defer w.shutdown()
	r := w.rawACP()
	work, _ := json.Marshal(w.work)
	bad := func(name, line, want string) {
		t.Helper()
		m := r.answer(line)
		if got := m.problem(); got != want {
			t.Errorf("issue/6-3 %s: %s, want %s: %s", name, got, want, m.Error)
		}
	}
	bad("no JSON", `{"jsonrpc":`, "null -32700 parseError")
	bad("a batch", `[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, "null -32600 invalidRequest")
	bad("another protocol", `{"id":1,"method":"initialize"}`, "null -32600 invalidRequest")
	bad("an id that is none", `{"jsonrpc":"2.0","id":{},"method":"initialize"}`, "null -32600 invalidRequest")
	bad("nothing at all", `{"jsonrpc":"2.0","id":7}`, "7 -32600 invalidRequest")
	bad("a broken answer", `{"jsonrpc":"2.0","id":7,"error":3}`, "null -32600 invalidRequest")
	bad("too long a line", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":"`+strings.Repeat("x", 10<<20)+`"}}`, "null -32600 invalidRequest")
	bad("too early", `{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}`, "1 -32600 invalidRequest")
	if m := r.answer(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":1}}`); m.Error != nil || string(m.ID) != `"a"` {
		t.Fatalf("initialize: %s", m.Error)
	}
	bad("twice", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`, "1 -32600 invalidRequest")
	bad("no such method", `{"jsonrpc":"2.0","id":1,"method":"session/dance","params":{}}`, "1 -32601")
	bad("no authentication", `{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"methodId":"x"}}`, "1 -32602 invalidParams /methodId")
	bad("a relative directory", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"here","mcpServers":[]}}`, "1 -32602 invalidParams /cwd")
	bad("no servers", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}`, "1 -32602 invalidParams")
	bad("a text for servers", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":"x"}}`, "1 -32602 invalidParams")
	bad("sse", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%s,"mcpServers":[{"type":"sse","name":"x","url":"http://x","headers":[]}]}}`, work), "1 -32602 invalidParams /mcpServers/0")
	bad("a server twice", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%s,"mcpServers":[{"name":"x y","command":"a","args":[],"env":[]},{"name":"x_y","command":"b","args":[],"env":[]}]}}`, work), "1 -32602 invalidParams /mcpServers/1/name")
	if list := r.answer(`{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}`); string(list.Result) != `{"sessions":[]}` {
		t.Errorf("issue/6-3 what was refused has left %s", list.Result)
	}
	var made struct {
		SessionID string `json:"sessionId"`
	}
	m := r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%s,"mcpServers":[]}}`, work))
	if err := json.Unmarshal(m.Result, &made); err != nil || made.SessionID == "" {
		t.Fatalf("session/new: %s", m.Error)
	}
	in := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/%s","params":{"sessionId":%q,%s}}`, method, made.SessionID, params)
	}
	bad("an unknown session", strings.Replace(in("prompt", `"prompt":[{"type":"text","text":"x"}]`), made.SessionID, "ses_x", 1), "1 -32002 sessionNotFound")
	bad("an empty prompt", in("prompt", `"prompt":[]`), "1 -32602 invalidParams /prompt")
	bad("sound", in("prompt", `"prompt":[{"type":"audio","data":"","mimeType":"audio/wav"}]`), "1 -32602 invalidParams /prompt/0")
	bad("an image that is none", in("prompt", `"prompt":[{"type":"image","data":"?","mimeType":"image/png"}]`), "1 -32602 invalidParams /prompt/0/data")
	bad("an unknown mode", in("set_mode", `"modeId":"dance"`), "1 -32602 invalidParams /modeId")
	bad("an unknown model", in("set_model", `"modelId":"dance"`), "1 -32002 modelNotFound")
	bad("an unknown option", in("set_config_option", `"configId":"dance","value":"x"`), "1 -32602 invalidParams /configId")
	bad("an unknown value", in("set_config_option", `"configId":"mode","value":"x"`), "1 -32602 invalidParams /value")
	if m := r.answer(in("prompt", `"prompt":[{"type":"text","text":"x"}]`)); string(m.Result) != `{"stopReason":"end_turn"}` {
		t.Errorf("issue/6-3 after all that, a prompt ends with %s %s", m.Result, m.Error)
	}
	// A cancellation right behind its prompt, in one piece.
	two := in("prompt", `"prompt":[{"type":"text","text":"[[fake deltas=1000 us=20000]]"}]`) + "\n" + fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, made.SessionID)
	begun := time.Now()
	if m := r.answer(two); string(m.Result) != `{"stopReason":"cancelled"}` || time.Since(begun) > 10*time.Second {
		t.Errorf("issue/6-3 what is cancelled at once ends after %s with %s %s", time.Since(begun), m.Result, m.Error)
	}
	if m := r.answer(in("close", `"x":0`)); string(m.Result) != "{}" {
		t.Errorf("issue/6-3 session/close: %s %s", m.Result, m.Error)
	}
	if m := r.answer(in("delete", `"x":0`)); string(m.Result) != "{}" {
		t.Errorf("issue/6-3 session/delete: %s %s", m.Result, m.Error)
	}
}

// TestACPContent has the model see all that a prompt may hold.
func TestACPContent(t *testing.T) {
	w := newWorld(t, "allow", step(says("Seen.")))
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	kind := "application/json"
	_, err := e.Prompt(e.context(), sdk.PromptRequest{SessionId: e.id, Prompt: []sdk.ContentBlock{
		sdk.TextBlock("Look:"), sdk.ResourceLinkBlock("main.go", "file:///w/main.go"), sdk.ImageBlock("aGVsbG8=", "image/png"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///w/a.json", Text: `{"a":1}`, MimeType: &kind}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	asked := string(w.model.Requests()[0].Body)
	for _, want := range []string{"Look:", "[main.go](file:///w/main.go)", "data:image/png;base64,aGVsbG8=", `[attachment file:///w/a.json]`} {
		if !strings.Contains(asked, want) {
			t.Errorf("issue/6-3 the model was not shown %s: %s", want, asked)
		}
	}
}

// TestACPIsolated serves from the process itself.
func TestACPIsolated(t *testing.T) {
	w := newWorld(t, "allow", step(says("Alone.")))
	e := w.editor(sdk.ClientCapabilities{}, "--isolated")
	e.open(w.work)
	if stop := e.says("hi"); stop != sdk.StopReasonEndTurn || !e.shown("agent: Alone.") {
		t.Errorf("issue/6-3 the turn ends with %s: %s", stop, e.story())
	}
	e.in.Close()
	if err := e.cmd.Wait(); err != nil {
		t.Errorf("issue/6-3 lashd acp --isolated ends with %v", err)
	}
	if _, err := os.Stat(w.socket); err == nil {
		t.Error("issue/6-3 it has left a socket")
	}
}
