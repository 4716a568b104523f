package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
		if r.Outcome == nil || len(r.Issues) == 0 || r.Issues[0].Code != "resource_unavailable" || r.Issues[0].Message != "read @library:doc://books/none: Resource not found" {
			t.Errorf("a missing resource ended the turn with %+v", r.Issues)
		}
		big := strings.Repeat("x", 3<<20)
		server.AddResource(&sdk.Resource{Name: "big", URI: "doc://big"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: big}}}, nil
		})
		twice := `{"server":"library","uri":"doc://big"},{"server":"library","uri":"doc://big"}`
		r = asked[protocol.TurnReport](p, "turn/run", session+`,"input":[{"type":"text","text":"x"}],"resources":[`+twice+`]}`)
		if r.Outcome == nil || len(r.Issues) != 1 || r.Issues[0].Code != "resource_unavailable" || !strings.Contains(r.Issues[0].Message, "more than 4194304; name less in one input") {
			t.Errorf("resources that are too large together ended the turn with %+v", r.Issues)
		}
	})
}

func TestMCPServersOfOneName(t *testing.T) {
	_, url := newLibrary(t)
	second, other := newLibrary(t)
	second.AddPrompt(&sdk.Prompt{Name: "hidden"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{}, nil
	})
	p := newPlace(t)
	plugins := filepath.Join(filepath.Dir(p.home), "user", ".config", "lashd", "plugins")
	for name, at := range map[string]string{"one": url, "two": other} {
		text := `{"name":"` + name + `","lashd":{"mcpServers":{"library":{"url":"` + at + `"}}}}`
		if err := errors.Join(os.MkdirAll(filepath.Join(plugins, name), 0o700), os.WriteFile(filepath.Join(plugins, name, "plugin.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	ready := func() bool {
		n := 0
		for _, info := range asked[protocol.PluginListResult](p, "plugin/list", `{}`).Data {
			for _, s := range info.Servers {
				if s.State == "ready" {
					n++
				}
			}
		}
		return n == 2
	}
	wait.Until(t, "both servers work", ready)
	warning := filepath.Join(plugins, "two") + `: the plugin one has an MCP server of the name "library", too, and comes first: sessions use the prompts and resources of that one, and of two tools with the same name its tool. Rename one of the servers.`
	if out := p.want(0, "", "", "plugin", "list").out; strings.Count(out, "MCP server of the name") != 1 || !strings.Contains(out, warning) {
		t.Errorf("part13/6 two plugins have a server of one name, but lash plugin list has\n%s\nwant\n%s", out, warning)
	}
	id := asked[protocol.SessionNewResult](p, "session/new", `{"cwd":"`+p.work+`"}`).SessionID
	session := `{"sessionId":"` + string(id) + `"`
	var offered []string
	for _, c := range asked[protocol.CommandListResult](p, "command/list", session+`}`).Data {
		if c.Kind == protocol.CommandPrompt {
			offered = append(offered, c.Plugin+" "+c.Name)
		}
	}
	for _, r := range asked[protocol.MCPResourcesResult](p, "mcp/resources", session+`}`).Data {
		offered = append(offered, r.URI)
	}
	if want := []string{"one mcp__library__review", "doc://shelf/guide", "doc://books/{title}"}; !slices.Equal(offered, want) {
		t.Errorf("part13/6 of two servers of one name a session offers %q, want %q", offered, want)
	}
}

func TestLongNamesOfPrompts(t *testing.T) {
	server, url := newLibrary(t)
	none := func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{}, nil
	}
	server.AddPrompt(&sdk.Prompt{Name: strings.Repeat("n", 129)}, none)
	server.AddPrompt(&sdk.Prompt{Name: "argued", Arguments: []*sdk.PromptArgument{{Name: strings.Repeat("a", 129)}}}, none)
	server.AddPrompt(&sdk.Prompt{Name: "z" + strings.Repeat("n", 127)}, none)
	p := newPlace(t)
	p.want(0, "Added library to ", "", "mcp", "add", "library", url)
	p.until("the server works", func(s protocol.PluginServer) bool { return s.State == "ready" })
	id := asked[protocol.SessionNewResult](p, "session/new", `{"cwd":"`+p.work+`"}`).SessionID
	var names []string
	for _, c := range asked[protocol.CommandListResult](p, "command/list", `{"sessionId":"`+string(id)+`"}`).Data {
		if c.Kind == protocol.CommandPrompt {
			names = append(names, c.Prompt)
		}
	}
	if want := []string{"review", "z" + strings.Repeat("n", 127)}; !slices.Equal(names, want) {
		t.Errorf("part13/6 a server with long names offers %q, want %q", names, want)
	}
}
