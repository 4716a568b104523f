// Command mcpserver is a plain MCP server on the SDK for Go. Tests use it as an independent server.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	s := mcp.NewServer(&mcp.Implementation{Name: "e2e", Version: "1.0.0"}, nil)
	add(s, "pid", "Returns the id of this process.", func(context.Context, *mcp.CallToolRequest) (string, error) {
		return fmt.Sprint(os.Getpid()), nil
	})
	add(s, "greeting", "Returns the configured greeting.", func(context.Context, *mcp.CallToolRequest) (string, error) {
		return os.Getenv("GREETING"), nil
	})
	add(s, "client", "Names its client.", func(_ context.Context, r *mcp.CallToolRequest) (string, error) {
		c := r.Session.InitializeParams().ClientInfo
		return c.Name + " " + c.Version, nil
	})
	add(s, "grow", "Adds a tool.", func(context.Context, *mcp.CallToolRequest) (string, error) {
		add(s, "grown", "Has come later.", func(context.Context, *mcp.CallToolRequest) (string, error) { return "I am new", nil })
		return "grown", nil
	})
	add(s, "colour", "Asks for a colour.", colour)
	add(s, "summary", "Has the model of the client write a summary.", summary)
	mcp.AddTool(s, &mcp.Tool{Name: "outline", Description: "Does the same, and only reads.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		text, err := summary(ctx, r)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
	})
	add(s, "page", "Asks the person to open a page.", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "url", Message: "Please\n pay.", URL: os.Getenv("PAGE"), ElicitationID: "e1"})
		if err != nil {
			return "", err
		}
		return answer.Action, nil
	})
	add(s, "gated", "Works once the person has opened a page.", gated())
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// add adds a tool without arguments that returns a text.
func add(s *mcp.Server, name, description string, f func(context.Context, *mcp.CallToolRequest) (string, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		text, err := f(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}

// summary returns the model's answer, or the error with its code.
func summary(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
	//lint:ignore SA1019 servers of the versions that lashd begins with use it
	answer, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{ //lint:ignore SA1019 as above
		SystemPrompt: "You write summaries.", MaxTokens: 100_000,
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: os.Getenv("SAMPLE")}}}, //lint:ignore SA1019 as above
	})
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Sprintf("refused: %d %s", refused.Code, refused.Message), nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s said %s (%s)", answer.Model, answer.Content.(*mcp.TextContent).Text, answer.StopReason), nil
}

// gated returns a tool that requires a page of this machine to be opened before its first call.
func gated() func(context.Context, *mcp.CallToolRequest) (string, error) {
	var opened atomic.Bool
	return func(_ context.Context, r *mcp.CallToolRequest) (string, error) {
		if opened.Load() {
			return "the gate is open", nil
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			opened.Store(true)
			_ = r.Session.NotifyElicitationComplete(context.Background(), &mcp.ElicitationCompleteParams{ElicitationID: "gate"})
		}))
		return "", mcp.URLElicitationRequiredError([]*mcp.ElicitParams{{
			Mode: "url", Message: "Open the gate.", URL: "http://" + l.Addr().String() + "/gate", ElicitationID: "gate",
		}})
	}
}

func colour(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
	answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{
		Message:         "Which colour?",
		RequestedSchema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"colour": {Type: "string"}}, Required: []string{"colour"}},
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(answer.Action, " ", answer.Content["colour"]), nil
}
