package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// UnstableCreateElicitation implements the SDK's interface. It fills in every form.
func (e *acpEditor) UnstableCreateElicitation(context.Context, sdk.UnstableCreateElicitationRequest) (sdk.UnstableCreateElicitationResponse, error) {
	r := sdk.NewUnstableCreateElicitationResponseAccept()
	r.Accept.Content = map[string]any{"colour": "green"}
	return r, nil
}

// TestACPServers adds MCP servers from the editor. The model calls their tools, and they ask the user
// questions with forms.
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

// TestACPSteers sends prompts during a turn: one that steers it, and one that it cannot use any more.
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
	eventually(t, "the prompt is queued", func() error {
		if queue := ask[protocol.QueueListResult](p, "queue/list", protocol.QueueListParams{SessionID: protocol.SessionID(e.id)}).Data; len(queue) != 2 { // the running turn's and this one
			return fmt.Errorf("%d queued", len(queue))
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
		if queue := ask[protocol.QueueListResult](p, "queue/list", protocol.QueueListParams{SessionID: protocol.SessionID(e.id)}).Data; len(queue) != 2 { // the running turn's and this one
			return fmt.Errorf("%d queued", len(queue))
		}
		return nil
	})
	e.Cancel(e.context(), sdk.CancelNotification{SessionId: e.id})
	for i, done := range []<-chan prompted{first, second} {
		if r := <-done; r.stop != sdk.StopReasonCancelled || r.err != nil {
			t.Errorf("issue/6-3 prompt %d of those that were cancelled ends with %s %v", i+1, r.stop, r.err)
		}
	}
	ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: protocol.SessionID(e.id)})
	if n := len(w.model.Requests()); n != 3 {
		t.Errorf("issue/6-3 the model was called %d times, though the prompt was cancelled before a turn used it", n)
	}
}

// TestACPStops has turns end for every stop reason of the protocol, and once with an error.
func TestACPStops(t *testing.T) {
	for name, c := range map[string]struct {
		step fakemodel.Step
		stop sdk.StopReason
		err  string
	}{
		"max_tokens": {fakemodel.Step{Parts: []fakemodel.Part{says("cut")}, Finish: "length"}, sdk.StopReasonMaxTokens, ""},
		"refusal":    {fakemodel.Step{Parts: []fakemodel.Part{says("no")}, Finish: "content_filter"}, sdk.StopReasonRefusal, ""},
		"an error":   {fakemodel.Step{Status: 400}, "", "-32020 providerError"},
		"a bad key":  {fakemodel.Step{Status: 401}, "", "-32000 providerError"},
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

// TestACPContent checks that the model sees every kind of content that a prompt can have.
func TestACPContent(t *testing.T) {
	w := newWorld(t, "allow", step(says("Seen.")))
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	kind := "application/json"
	_, err := e.Prompt(e.context(), sdk.PromptRequest{SessionId: e.id, Prompt: []sdk.ContentBlock{
		sdk.TextBlock("Look:"), sdk.ResourceLinkBlock("main.go", "file:///w/main.go"), sdk.ImageBlock("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", "image/png"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///w/a.json", Text: `{"a":1}`, MimeType: &kind}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	asked := string(w.model.Requests()[0].Body)
	for _, want := range []string{"Look:", "[main.go](file:///w/main.go)", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", `[attachment file:///w/a.json]`} {
		if !strings.Contains(asked, want) {
			t.Errorf("issue/6-3 the model was not shown %s: %s", want, asked)
		}
	}
}

// TestACPIsolated runs lashd acp --isolated.
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
		t.Error("issue/6-3 it left a socket behind")
	}
}

// TestACPImages starts lashd acp with models that read text, and with one more that reads images.
func TestACPImages(t *testing.T) {
	const reader, seer = "[[models]]\nid = \"reader\"\ninputs = [\"text\"]\n", "[[models]]\nid = \"seer\"\ninputs = [\"image\"]\n"
	for _, c := range []struct{ models, want string }{
		{reader, `"promptCapabilities":{"embeddedContext":true}`},
		{reader + seer, `"promptCapabilities":{"embeddedContext":true,"image":true}`},
	} {
		t.Run("runtime/S15 lashd acp announces images if a model takes them, and refuses them for a session whose model does not: "+c.want, func(t *testing.T) {
			w := newWorld(t, "allow")
			w.write(filepath.Join(w.dir, "config.toml"), w.text("../data/config.toml")+c.models)
			defer w.shutdown()
			r := w.rawACP()
			m := r.answer(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
			if !strings.Contains(string(m.Result), c.want) {
				t.Errorf("initialize answers %s, want %s", m.Result, c.want)
			}
			id := r.session(w)
			r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/set_model","params":{"sessionId":%q,"modelId":"reader"}}`, id))
			m = r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB","mimeType":"image/png"}]}}`, id))
			if text := string(m.Error); !strings.Contains(text, "model reader does not take images") || !strings.Contains(text, "unsupportedInput") {
				t.Errorf("a prompt with an image is answered with %s %s", m.Result, text)
			}
			if n := len(w.model.Requests()); n != 0 {
				t.Errorf("the model was called %d times", n)
			}
		})
	}
}

// TestACPEffort chooses the reasoning effort of a session in an editor.
func TestACPEffort(t *testing.T) {
	t.Run("runtime/M08 an editor sees and sets the reasoning effort, if the model of the session has one", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("Fine.")))
		w.write(filepath.Join(w.dir, "config.toml"), w.text("../data/config.toml")+"[[models]]\nid = \"plain\"\n[[models]]\nid = \"thinker\"\nefforts = [\"low\", \"high\"]\n")
		defer w.shutdown()
		r := w.rawACP()
		r.answer(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
		id := r.session(w)
		set := func(option, value, want string) {
			t.Helper()
			m := r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/set_config_option","params":{"sessionId":%q,"configId":%q,"value":%q}}`, id, option, value))
			_, got, _ := strings.Cut(string(m.Result), `"category":"thought_level",`)
			if got, _, _ = strings.Cut(got, `"description"`); m.Error != nil || !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("after %s = %s the effort is %s, want %s; error %s", option, value, got, want, m.Error)
			}
		}
		set("mode", "plan", "")
		set("model", "thinker", `"currentValue":"default","id":"effort","name":"Reasoning effort","options":[{"name":"Default","value":"default"},{"name":"low","value":"low"},{"name":"high","value":"high"}]`)
		set("effort", "high", `"currentValue":"high"`)
		r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"hello"}]}}`, id))
		if all := w.model.Requests(); len(all) != 1 || !strings.Contains(string(all[0].Body), `"reasoning_effort":"high"`) {
			t.Errorf("the model got %+v", all)
		}
		set("effort", "default", `"currentValue":"default"`)
	})
}

// TestACPSandbox chooses the sandbox of a session's commands in an editor.
func TestACPSandbox(t *testing.T) {
	t.Run("part11/1 an editor sees and sets the sandbox of commands, and the other approval settings stay", func(t *testing.T) {
		w := newWorld(t, "ask")
		defer w.shutdown()
		r := w.rawACP()
		r.answer(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
		id := r.session(w)
		p := w.dial("")
		for _, mode := range []string{"workspace", "readOnly", "fullAccess"} {
			m := r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/set_config_option","params":{"sessionId":%q,"configId":"sandbox","value":%q}}`, id, mode))
			if m.Error != nil || !strings.Contains(string(m.Result), `"category":"_sandbox","currentValue":"`+mode+`","id":"sandbox"`) {
				t.Errorf("after %s the editor reads %s; error %s", mode, m.Result, m.Error)
			}
			got := ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: protocol.SessionID(id)}).Session.Config.Approval
			if string(got.Sandbox) != mode || got.Mode != protocol.ApproveAsk {
				t.Errorf("after %s the session has %+v", mode, got)
			}
		}
	})
}
