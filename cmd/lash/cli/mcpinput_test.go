package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// newLibrary serves an MCP server with a prompt, a resource and a template over HTTP.
func newLibrary(t *testing.T) (*sdk.Server, string) {
	server := sdk.NewServer(&sdk.Implementation{Name: "library", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: func(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{r.Params.Ref.Type + " " + r.Params.Argument.Name + " " + r.Params.Argument.Value + "x"}}}, nil
		},
	})
	server.AddPrompt(&sdk.Prompt{Name: "review", Description: "Reviews a change", Arguments: []*sdk.PromptArgument{{Name: "file", Required: true}, {Name: "focus"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "review " + r.Params.Arguments["file"] + " for " + r.Params.Arguments["focus"]}}}}, nil
		})
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		if !strings.HasSuffix(r.Params.URI, "/guide") {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "the guide says 42"}}}, nil
	}
	server.AddResource(&sdk.Resource{Name: "guide", URI: "doc://shelf/guide", MIMEType: "text/plain"}, read)
	server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "book", URITemplate: "doc://books/{title}"}, read)
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
		web.Close()
	})
	return server, web.URL
}

// asked calls a method and decodes its result.
func asked[T any](p *place, method, params string) (result T) {
	p.t.Helper()
	out := p.want(0, "", "", "call", method, params).out
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		p.t.Fatalf("%s: %v", out, err)
	}
	return result
}

func TestMCPPromptsAndResources(t *testing.T) {
	server, url := newLibrary(t)
	p := newPlace(t)
	p.want(0, "Added library to ", "", "mcp", "add", "library", url)
	p.until("the server works", func(s protocol.PluginServer) bool { return s.State == "ready" })
	id := asked[protocol.SessionNewResult](p, "session/new", `{"cwd":"`+p.work+`"}`).SessionID
	session := `{"sessionId":"` + string(id) + `"`
	commands := func() (names []string) {
		for _, c := range asked[protocol.CommandListResult](p, "command/list", session+`}`).Data {
			names = append(names, strings.TrimSpace(string(c.Kind)+" "+c.Name+" "+c.Hint))
		}
		return names
	}
	history := func() string { return p.want(0, "", "", "call", "session/read", session+`}`).out }

	t.Run("part13/6 a prompt is a slash command with arguments, which a server can add later", func(t *testing.T) {
		if got := commands(); !slices.Equal(got, []string{"command init [FOCUS]", "prompt mcp__library__review <file> [focus]"}) {
			t.Errorf("the commands are %q", got)
		}
		r := asked[protocol.TurnReport](p, "turn/run", session+`,"input":[{"type":"text","text":"/mcp__library__review a.go speed"}],"command":{"name":"mcp__library__review","arguments":"'a b.go' focus=speed"}}`)
		if r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeAssistantMessage || !strings.Contains(history(), "review a b.go for speed") {
			t.Errorf("the turn ended with %+v, and the history is %s", r.Outcome, history())
		}
		r = asked[protocol.TurnReport](p, "turn/run", session+`,"input":[{"type":"text","text":"/x"}],"command":{"name":"mcp__library__review"}}`)
		if r.Outcome == nil || len(r.Issues) == 0 || r.Issues[0].Code != "prompt_unavailable" || !strings.Contains(r.Issues[0].Message, "the argument file is missing") {
			t.Errorf("without its argument the turn ended with %+v", r.Issues)
		}
		server.AddPrompt(&sdk.Prompt{Name: "later"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{}, nil
		})
		wait.Until(t, "the new prompt is listed", func() bool { return slices.Contains(commands(), "prompt mcp__library__later") })
	})

	t.Run("part13/6 arguments of prompts and templates are completed by the server", func(t *testing.T) {
		got := asked[protocol.MCPCompleteResult](p, "mcp/complete", session+`,"server":"library","prompt":"review","argument":"file","value":"a"}`)
		more := asked[protocol.MCPCompleteResult](p, "mcp/complete", session+`,"server":"library","template":"doc://books/{title}","argument":"title","value":"b"}`)
		if !slices.Equal(got.Values, []string{"ref/prompt file ax"}) || !slices.Equal(more.Values, []string{"ref/resource title bx"}) {
			t.Errorf("the values are %q and %q", got.Values, more.Values)
		}
	})

	t.Run("part13/6 a resource that the input names is read when the turn starts, with its source", func(t *testing.T) {
		var listed []string
		for _, r := range asked[protocol.MCPResourcesResult](p, "mcp/resources", session+`}`).Data {
			listed = append(listed, r.Server+" "+r.URI)
		}
		if !slices.Equal(listed, []string{"library doc://shelf/guide", "library doc://books/{title}"}) {
			t.Errorf("the resources are %q", listed)
		}
		r := asked[protocol.TurnReport](p, "turn/run", session+`,"input":[{"type":"text","text":"@library:doc://shelf/guide"}],"resources":[{"server":"library","uri":"doc://shelf/guide"}]}`)
		if r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeAssistantMessage || !strings.Contains(history(), `[The resource doc://shelf/guide of the MCP server library]\nthe guide says 42`) {
			t.Errorf("the turn ended with %+v, and the history is %s", r.Outcome, history())
		}
		r = asked[protocol.TurnReport](p, "turn/run", session+`,"input":[{"type":"text","text":"x"}],"resources":[{"server":"library","uri":"doc://books/none"}]}`)
		if r.Outcome == nil || len(r.Issues) == 0 || r.Issues[0].Code != "resource_unavailable" || !strings.Contains(r.Issues[0].Message, "read @library:doc://books/none: ") {
			t.Errorf("a missing resource ended the turn with %+v", r.Issues)
		}
	})
}
