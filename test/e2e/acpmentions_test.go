package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/rpc/protocol"
)

// shelf is an MCP server with one resource, which an editor can add. While held is set, it does not list its resources.
type shelf struct {
	held   atomic.Pointer[chan struct{}]
	asked  chan struct{} // gets a value for each list that is held
	server acp.McpServer
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{asked: make(chan struct{}, 16)}
	server := sdk.NewServer(&sdk.Implementation{Name: "shelf", Version: "1"}, nil)
	server.AddResource(&sdk.Resource{Name: "guide", URI: "doc://guide"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "the guide says 42"}}}, nil
	})
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if held := s.held.Load(); held != nil && method == "resources/list" {
				s.asked <- struct{}{}
				select {
				case <-*held:
				case <-ctx.Done():
				}
			}
			return next(ctx, method, r)
		}
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(web.Close)
	s.server = acp.McpServer{Http: &acp.McpServerHttpInline{Name: "shelf", Url: web.URL, Headers: []acp.HttpHeader{}, Type: "http"}}
	return s
}

// hold has the server list nothing until the returned function is called.
func (s *shelf) hold() (release func()) {
	ch := make(chan struct{})
	s.held.Store(&ch)
	return func() { s.held.Store(nil); close(ch) }
}

const guideText = `[The resource doc://guide of the MCP server shelf]\nthe guide says 42`

// TestACPMentions has an editor name resources of a server that it added.
func TestACPMentions(t *testing.T) {
	t.Run("part13/6 the text of a prompt names resources of the session's servers", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("One.")), step(says("Two.")))
		defer w.shutdown()
		e := w.editor(acp.ClientCapabilities{})
		e.open(w.work, newShelf(t).server)
		e.says("Summarize @shelf:doc://guide, and ask me@shelf:doc://guide.")
		if w.read(guideText) != 1 || w.read("Summarize @shelf:doc://guide, and") != 1 {
			t.Errorf("the model reads %s", w.bodies()[0])
		}
		if !strings.Contains(e.story(), "doc://guide") {
			t.Errorf("the editor does not show what was added:\n%s", e.story())
		}
		link, text := acp.ResourceLinkBlock("@shelf:doc://guide", "file:///x"), "See @shelf:doc://guide"
		file := acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: "file:///x", Text: text}})
		if _, err := e.Prompt(e.context(), acp.PromptRequest{SessionId: e.id, Prompt: []acp.ContentBlock{acp.TextBlock("look"), link, file}}); err != nil {
			t.Fatal(err)
		}
		if w.read(guideText) != 1 {
			t.Errorf("a link and a file name resources, too: the model reads %s", w.bodies()[1])
		}
	})
	t.Run("part13/6 a prompt with resources waits for a turn of its own", func(t *testing.T) {
		w := newWorld(t, "ask", step(says("I ask."), shell("echo did-it")), step(says("Both.")), step(says("Third.")))
		defer w.shutdown()
		e := w.editor(acp.ClientCapabilities{})
		e.open(w.work, newShelf(t).server)
		permit := make(chan string)
		e.answers(func(context.Context, acp.RequestPermissionRequest) string { return <-permit })
		first := e.begins("one")
		e.until("the agent asks", func() bool { return len(e.asked) == 1 })
		second := e.begins("Read @shelf:doc://guide")
		p := w.dial("")
		eventually(t, "the prompt is queued", func() error {
			if queue := ask[protocol.QueueListResult](p, "queue/list", protocol.QueueListParams{SessionID: protocol.SessionID(e.id)}).Data; len(queue) != 2 { // the running turn's and this one
				return fmt.Errorf("%d queued", len(queue))
			}
			return nil
		})
		permit <- "allowOnce"
		for n, done := range []<-chan prompted{first, second} {
			if r := <-done; r.err != nil || r.stop != acp.StopReasonEndTurn {
				t.Errorf("prompt %d ends with %v %v", n+1, r.stop, r.err)
			}
		}
		if all := w.bodies(); len(all) != 3 || strings.Contains(all[1], "@shelf") || !strings.Contains(all[2], guideText) {
			t.Errorf("the model reads %s", all)
		}
	})
	t.Run("part13/6 while a server lists its resources for a prompt, the running turn goes on", func(t *testing.T) {
		w := newWorld(t, "ask", step(says("I ask."), shell("echo did-it")), step(says("Both.")), step(says("Third.")))
		defer w.shutdown()
		s := newShelf(t)
		e := w.editor(acp.ClientCapabilities{})
		e.open(w.work, s.server)
		permit := make(chan string)
		e.answers(func(ctx context.Context, _ acp.RequestPermissionRequest) string { return <-permit })
		release := s.hold()
		first := e.begins("one")
		e.until("the agent asks", func() bool { return len(e.asked) == 1 })
		second := e.begins("Read @shelf:doc://guide")
		<-s.asked
		permit <- "allowOnce"
		if r := <-first; r.err != nil || r.stop != acp.StopReasonEndTurn {
			t.Errorf("the running turn ends with %v %v", r.stop, r.err)
		}
		queue := ask[protocol.QueueListResult](w.dial(""), "queue/list", protocol.QueueListParams{SessionID: protocol.SessionID(e.id)}).Data
		if n := len(w.model.Requests()); n != 2 || len(queue) != 0 {
			t.Errorf("the running turn ends only after the list: the model was asked %d times, and the queue has %+v", n, queue)
		}
		release()
		if r := <-second; r.err != nil || r.stop != acp.StopReasonEndTurn || w.read(guideText) != 1 {
			t.Errorf("the prompt with resources ends with %v %v, and the model reads %s", r.stop, r.err, w.bodies())
		}
	})
	t.Run("part13/6 the editor cancels a prompt whose resources are being listed", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("Later.")))
		defer w.shutdown()
		s := newShelf(t)
		e := w.editor(acp.ClientCapabilities{})
		e.open(w.work, s.server)
		defer s.hold()()
		prompt := e.begins("Read @shelf:doc://guide")
		<-s.asked
		began := time.Now()
		if err := e.Cancel(e.context(), acp.CancelNotification{SessionId: e.id}); err != nil {
			t.Fatal(err)
		}
		if r := <-prompt; r.err != nil || r.stop != acp.StopReasonCancelled || time.Since(began) > 8*time.Second { // less than the servers have to answer
			t.Errorf("it ends with %v %v after %v", r.stop, r.err, time.Since(began))
		}
		e.says("next")
		if all := w.bodies(); len(all) != 1 || strings.Contains(all[0], "Read @shelf") {
			t.Errorf("after a cancelled prompt and another one, the model read %s", all)
		}
	})
}
