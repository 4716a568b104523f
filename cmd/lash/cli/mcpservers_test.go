package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// offers returns the prompts and the resources of a session.
func (p *place) offers(session string) (all []string) {
	p.t.Helper()
	for _, c := range asked[protocol.CommandListResult](p, "command/list", session+`}`).Data {
		if c.Kind == protocol.CommandPrompt {
			all = append(all, "/"+c.Name)
		}
	}
	r := asked[protocol.MCPResourcesResult](p, "mcp/resources", session+`}`)
	for _, one := range r.Data {
		all = append(all, "@"+one.Server+":"+one.URI)
	}
	for _, f := range r.Failed {
		all = append(all, f.Server+" failed: "+f.Reason)
	}
	return all
}

func TestPromptsOfClientServers(t *testing.T) {
	_, url := newLibrary(t)
	p := newPlace(t)
	id := asked[protocol.SessionNewResult](p, "session/new", `{"cwd":"`+p.work+`"}`).SessionID
	session := `{"sessionId":"` + string(id) + `"`
	want := []string{"/mcp__shelf__review", "@shelf:doc://shelf/guide", "@shelf:doc://books/{title}"}
	if got := p.offers(session); got != nil {
		t.Errorf("part13/6 before, the session offers %q", got)
	}
	asked[protocol.SessionOverlayResult](p, "session/setOverlay", session+`,"mcpServers":{"shelf":{"url":"`+url+`"}}}`)
	wait.Until(t, "the prompts of the server", func() bool { return len(p.offers(session)) == len(want) })
	if got := p.offers(session); !slices.Equal(got, want) {
		t.Errorf("part13/6 with a server of a client, the session offers %q, want %q", got, want)
	}
	other := asked[protocol.SessionNewResult](p, "session/new", `{"cwd":"`+p.work+`"}`).SessionID
	if got := p.offers(`{"sessionId":"` + string(other) + `"`); got != nil {
		t.Errorf("part13/6 another session offers %q", got)
	}
	if got := asked[protocol.MCPCompleteResult](p, "mcp/complete", session+`,"server":"shelf","prompt":"review","argument":"file","value":"a"}`); !slices.Equal(got.Values, []string{"ref/prompt file ax"}) {
		t.Errorf("part13/6 a server of a client completes to %q", got.Values)
	}
	both := session + `,"input":[{"type":"text","text":"look"}],"command":{"name":"mcp__shelf__review","arguments":"a.go speed"},"resources":[{"server":"shelf","uri":"doc://shelf/guide"}]}`
	r := asked[protocol.TurnReport](p, "turn/run", both)
	history := p.want(0, "", "", "call", "session/read", session+`}`).out
	for _, text := range []string{"review a.go for speed", `[The resource doc://shelf/guide of the MCP server shelf]\nthe guide says 42`} {
		if r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeAssistantMessage || !strings.Contains(history, text) {
			t.Errorf("part13/6 the turn ended with %+v, and the history lacks %q: %s", r.Outcome, text, history)
		}
	}

	asked[protocol.SessionOverlayResult](p, "session/setOverlay", session+`,"includeBaseTools":false}`)
	if got := p.offers(session); got != nil {
		t.Errorf("part13/6 without the server, the session offers %q", got)
	}
	for params, want := range map[string]string{
		`"resources":[{"server":"shelf","uri":"doc://shelf/guide"}]`: "resource_unavailable: read @shelf:doc://shelf/guide: the session has no MCP server shelf now; if a client added it, connect that client again",
		`"command":{"name":"mcp__shelf__review"}`:                    "prompt_unavailable: run /mcp__shelf__review: the session has no such command now; if it is a prompt of a server that a client added, connect that client again",
	} {
		r := asked[protocol.TurnReport](p, "turn/run", session+`,"input":[{"type":"text","text":"look"}],`+params+`}`)
		if len(r.Issues) != 1 || string(r.Issues[0].Code)+": "+r.Issues[0].Message != want {
			t.Errorf("part13/6 after the server is gone, the turn ended with %+v, want %q", r.Issues, want)
		}
	}
}

func TestResourcesSideBySide(t *testing.T) {
	p := newPlace(t)
	id := asked[protocol.SessionNewResult](p, "session/new", `{"cwd":"`+p.work+`"}`).SessionID
	names := []string{"a", "b", "d", "e"}
	met, waiting := make(chan struct{}), atomic.Int32{} // no server answers before all have been asked
	servers := map[string]string{"c": silent(t)}
	for _, name := range names {
		var once sync.Once
		server := sdk.NewServer(&sdk.Implementation{Name: name, Version: "1"}, nil)
		server.AddResource(&sdk.Resource{Name: "one", URI: "doc://" + name}, nil)
		server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
				if method == "resources/list" {
					once.Do(func() {
						if waiting.Add(1) == int32(len(names)) {
							close(met)
						}
						select {
						case <-met:
						case <-ctx.Done():
						}
					})
				}
				return next(ctx, method, r)
			}
		})
		web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}))
		t.Cleanup(web.Close)
		servers[name] = web.URL
	}
	var all []string
	for name, url := range servers {
		all = append(all, `"`+name+`":{"url":"`+url+`"}`)
	}
	session := `{"sessionId":"` + string(id) + `"`
	asked[protocol.SessionOverlayResult](p, "session/setOverlay", session+`,"mcpServers":{`+strings.Join(all, ",")+`}}`)
	got := p.offers(session)
	if want := []string{"@a:doc://a", "@b:doc://b", "@d:doc://d", "@e:doc://e"}; len(got) != 5 || !slices.Equal(got[:4], want) || !strings.HasPrefix(got[4], "c failed: ") {
		t.Errorf("part13/6 with a server that never answers, the session offers %q, want %q and that c failed", got, want)
	}
}

// silent returns the address of a server that answers nothing.
func silent(t *testing.T) string {
	end := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-end:
		}
	}))
	t.Cleanup(web.Close)
	t.Cleanup(func() { close(end) })
	return web.URL
}
